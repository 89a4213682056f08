// A library that answers as NVML does, with what a test puts into it. Built as libraries of their own
// (CMakeLists.txt): the tests open them as the program opens the real one.
#pragma once

#include "monitor/nvml.h"

// The answers of one device. An error of NVML in the place of a success refuses all that the device is asked,
// but its handle.
struct FakeNvmlDevice {
  weir::monitor::nvml::Return handle_error = 0, error = 0;
  const char* name = "Fake GPU";
  unsigned mig = 0;
  unsigned percent = 0;
  unsigned long long memory_total = 0, memory_reserved = 0, memory_used = 0;  // bytes; used without reserved
  unsigned long long energy_mj = 0;
  unsigned power_mw = 0;
  unsigned clock_mhz = 0;
  unsigned long long clock_reasons = 0;
  const char* uuid = "GPU-10000000-0000-0000-0000-000000000000";
  unsigned persistence = 1, pcie_width = 16, pcie_most = 16;
  unsigned limit_mw = 700'000, usual_limit_mw = 700'000, most_clock_mhz = 1'980;
  unsigned long long ecc_errors = 0;
  unsigned neighbours = 0;  // beside this process
  bool has_gpm = true;
  double graphics = 0, tensor = 0;  // GPM's percent
  unsigned long long xid = 0;       // told once
};

struct FakeNvmlState {
  weir::monitor::nvml::Return init_error = 0, count_error = 0;
  unsigned count = 0;
  FakeNvmlDevice devices[4];
  int open = 0;         // nvmlInit less nvmlShutdown
  int gpm_samples = 0;  // alive
};

// The library's function "FakeNvml" gives its state, which lives as long as some handle of the library does.
using FakeNvmlFunction = FakeNvmlState*();
