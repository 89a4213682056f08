// Threads by name, and how many of them this process may keep busy.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace weir {

// The side of the CPU accounting that a thread belongs to.
enum class ThreadRole {
  kApplication,
  kRecogniser,  // computes for the model; threads that its library starts inherit the role
};

// Starts a thread of a role. `name` tells threads of the role apart, as in "0" or "load". Other processes see
// the role in the thread's kernel name, which the kernel passes on to threads that a library starts.
std::jthread StartThread(ThreadRole role, const std::string& name,
                         std::move_only_function<void(std::stop_token)> body);
// Starts a thread of the application, with `name` as its kernel name (15 bytes at most).
std::jthread StartThread(const std::string& name, std::move_only_function<void(std::stop_token)> body);

// Returns the role of the thread with this kernel name, in this process or in another one of this program.
ThreadRole RoleOfThread(std::string_view kernel_name);

// CPU time this process can use a second: the CPUs of its affinity mask, or the CPU quota of its control
// group (v1 or v2), whichever is less.
double CpuAllowance();

// The threads that can be busy at once: the allowance rounded up; at least 1.
int UsableCpus();

// Runs `work` on a thread of its own called `name`. `work` owns what it uses and may block for ever. Returns
// nullopt, and leaves the thread behind, if it has not ended a second after `stop` was requested.
std::optional<Status> RunUntil(const std::stop_token& stop, const std::string& name,
                               std::function<Status()> work);

}  // namespace weir
