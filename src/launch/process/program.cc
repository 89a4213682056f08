#include "launch/process/program.h"

#include <signal.h>

#include <utility>

namespace weir::launch {

Program::Program(std::string name, std::string address, std::unique_ptr<Tail> tail, Child child,
                 const Clock& clock)
    : name_(std::move(name)),
      address_(std::move(address)),
      clock_(clock),
      tail_(std::move(tail)),
      child_(std::move(child)) {}

Result<std::unique_ptr<Program>> Program::Start(std::string name, std::string address, SpawnOptions options,
                                                const Clock& clock) {
  std::unique_ptr<Tail> tail = TRY(Tail::Open());
  options.output = options.errors = tail->write_end();
  Child child = TRY(Child::Spawn(options));
  tail->CloseWriteEnd();
  return std::unique_ptr<Program>(
      new Program(std::move(name), std::move(address), std::move(tail), std::move(child), clock));
}

Ending Program::Stop(Duration patience) {
  child_.Signal(SIGTERM);
  if (const auto ending = child_.WaitForEnd(clock_.Now() + patience, clock_)) return *ending;
  return child_.Kill();
}

}  // namespace weir::launch
