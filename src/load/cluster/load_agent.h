// An agent's part of a load: a session whose levels rank 0 calls for.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/agent.h"
#include "cluster/message.h"
#include "load/generator/generator.h"
#include "load/session/level.h"
#include "load/session/load_session.h"
#include "load/session/options.h"
#include "load/session/target.h"

namespace weir::load {

// A request of rank 0 to a host: one run of its share of a level.
struct HostTask {
  double value = 0;  // of the whole level: requests a second, or in flight
  Duration length{};
  int64_t requests = 0;  // of the whole level; 0: by time
  uint64_t seed = 1;
  Instant begin;  // on the host's clock

  Json ToJson() const;
  static Result<HostTask> FromJson(const Json& json);  // kCorrupt names the key
};

// One thread at a time.
class LoadAgent {
 public:
  explicit LoadAgent(const Clock& clock) : clock_(clock) {}

  // Opens the target and makes the requests. The errors are those of CheckHosts, OpenTarget and RequestsFor.
  Status Open(LoadOptions options);
  // Plays one task. Blocks. kInvalidArgument before an Open that succeeded, and for a task that no run is.
  Result<cluster::Message> Play(const HostTask& task, cluster::CallContext& context);

 private:
  const Clock& clock_;
  std::unique_ptr<LoadOptions> options_;
  Level level_;  // the first; others differ in their rate or concurrency alone
  std::unique_ptr<Target> target_;
  bool opened_ = false;
  Requests requests_;
  std::vector<infer::Request> probe_;  // before they are prepared
};

}  // namespace weir::load
