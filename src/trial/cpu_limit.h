// A control group whose processes together use at most so many cores, as a scheduler's CPU limit does.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

namespace weir::trial {

// One thread at a time.
class CpuLimit {
 public:
  static constexpr double kPeriodUs = 100'000;  // of the kernel's quota, its default and Kubernetes'

  // `name` is part of the group's name. kUnsupported, with the remedy: this machine lets no such group be
  // made.
  static Result<std::unique_ptr<CpuLimit>> Make(const std::string& name, double cores);
  CpuLimit(const CpuLimit&) = delete;
  CpuLimit& operator=(const CpuLimit&) = delete;
  ~CpuLimit();  // what is still in the group returns to the one above

  // Moves a process with all its threads into the group. Its later children are in it too.
  Status Add(int pid);

 private:
  CpuLimit(std::string folder, std::string parent) : folder_(std::move(folder)), parent_(std::move(parent)) {}

  const std::string folder_, parent_;
};

}  // namespace weir::trial
