// Threads by name, and how many of them this process may keep busy.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace weir {

// A jthread whose kernel name (at most 15 bytes) is `name`. Threads that libraries start from it inherit the
// name: the monitor tells an engine's threads ("engine...") from the application's by it.
std::jthread StartThread(const std::string& name, std::move_only_function<void(std::stop_token)> body);

// CPU time this process can use a second: the CPUs of its affinity mask, or the CPU quota of its control
// group (v1 or v2), whichever is less.
double CpuAllowance();

// The threads that can be busy at once: the allowance rounded up; at least 1.
int UsableCpus();

}  // namespace weir
