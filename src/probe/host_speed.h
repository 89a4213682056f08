// Measured speeds of this host: arithmetic, memory, timer, system call, wake-up, loopback.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_result.h"

namespace weir::probe {

struct HostSpeedOptions {
  Duration budget = 200ms;  // of each measurement
  int threads = 1;          // of arithmetic and memory; the usable cores
};

// A rate of one thread alone and of all threads at once, in operations or bytes a second.
struct HostRate {
  double one_thread = 0, all_threads = 0;
};

struct HostSpeed {
  int threads = 1;
  std::string arithmetic;      // instruction sets used: "avx512", "avx512 amx", "avx2", "generic"
  HostRate f32_multiply_adds;  // in registers
  // In registers, or products of matrices from the caches where there is a matrix unit. Absent without
  // AVX-512 BF16 or VNNI and without a matrix unit.
  std::optional<HostRate> bf16_multiply_adds, int8_multiply_adds;
  HostRate memory_read_bytes, memory_copy_bytes;    // of blocks larger than the caches; a copy counts once
  double clock_read_ns = 0;                         // one reading of the steady clock
  double timer_late_us = 0, timer_late_p99_us = 0;  // median and p99 of sleeps of 500 us
  double system_call_ns = 0;                        // getppid
  double wake_up_us = 0, wake_up_p99_us = 0;        // from one thread's signal to the other's run
  double loopback_us = 0, loopback_p99_us = 0;      // half a round trip of 64 bytes over TCP on loopback
};

// Blocks for about twelve budgets. kIo where loopback cannot be used.
Result<HostSpeed> MeasureHostSpeed(const HostSpeedOptions& options, const Clock& clock);

// Speeds, and the conditions on the machine while they were measured.
struct HostReport {
  HostSpeed speed;
  MachineUse machine;
  StorageVerdict verdict;
};
// MeasureHostSpeed under the monitor.
Result<HostReport> MeasureHost(const HostSpeedOptions& options, const Clock& clock);

}  // namespace weir::probe
