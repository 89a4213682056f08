// A child process whose last output is kept: a server, or a container's front program.
#pragma once

#include <memory>
#include <string>

#include "launch/process/launched.h"
#include "launch/process/spawn.h"
#include "launch/process/tail.h"

namespace weir::launch {

class Program final : public Launched {
 public:
  // `options` but for its output, which goes to the tail.
  static Result<std::unique_ptr<Program>> Start(std::string name, std::string address, SpawnOptions options,
                                                const Clock& clock);

  const std::string& name() const override { return name_; }
  int pid() const override { return child_.pid(); }
  const std::string& address() const override { return address_; }
  std::optional<Ending> WaitForEnd(Instant until) override { return child_.WaitForEnd(until, clock_); }
  std::string LastWords() const override { return tail_->Text(); }
  Ending Stop(Duration patience) override;
  void Signal(int signal) { child_.Signal(signal); }

 private:
  Program(std::string name, std::string address, std::unique_ptr<Tail> tail, Child child, const Clock& clock);

  const std::string name_, address_;
  const Clock& clock_;
  const std::unique_ptr<Tail> tail_;
  Child child_;
};

}  // namespace weir::launch
