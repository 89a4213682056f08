// Resource use of another node, and of the processes that this one started there.
#pragma once

#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "launch/process/command.h"
#include "launch/ssh/ssh.h"
#include "results/monitor_result.h"

namespace weir::launch {

// `weir monitor` on that node, from about now (a connection is made first) until Stop(). Ends there with this
// object, and with this process in whatever way: it reads until its standard input ends. One thread at a
// time.
class SshWatch {
 public:
  // kNotFound where nothing of this process runs there. `host` is copied; `clock` must outlive it.
  static Result<std::unique_ptr<SshWatch>> Start(const SshHost& host, const Clock& clock);
  ~SshWatch();

  // Returns the resources that weir monitor tells. kUnsupported, with the remedy, where the node has no weir.
  Result<results::Resources> Stop();

 private:
  explicit SshWatch(SshHost host) : host_(std::move(host)) {}

  const SshHost host_;
  UniqueFd input_;
  Result<Output> output_;  // the thread's until it has ended
  std::jthread thread_;    // "launch-watch"
};

}  // namespace weir::launch
