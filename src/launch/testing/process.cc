#include "launch/testing/process.h"

#include <signal.h>

#include <utility>

#include "launch/network/network_link.h"
#include "launch/process/command.h"
#include "launch/process/orphans.h"
#include "launch/process/program.h"

namespace weir::launch {

Result<std::unique_ptr<Launched>> StartProcess(const ProcessOptions& options, const Clock& clock) {
  SpawnOptions spawn{.arguments = options.command,
                     .environment = options.environment,
                     .working_folder = options.working_folder,
                     .cpus = options.cpus,
                     .network_namespace = options.link != nullptr ? options.link->far_namespace() : -1,
                     .parent_death_signal = SIGKILL};
  spawn.environment.push_back(OwnerVariable());
  const std::string name = options.command.empty() ? "" : options.command[0];
  return TRY(Program::Start(name, options.link != nullptr ? options.link->far_address() : "127.0.0.1",
                            std::move(spawn), clock));
}

}  // namespace weir::launch
