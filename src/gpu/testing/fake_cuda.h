// A library that answers as NVIDIA's driver does, with what a test puts into it. Device memory is memory of
// the host, full of 0xCC when it is new and of 0xDD when it is freed, when nobody gets it again. Work is done
// when it is asked for, but copies to the host arrive with the next wait; time passes as the work says. Built
// as a library of its own (CMakeLists.txt): tests open it as the program opens the real one.
#pragma once

#include <cstddef>

struct FakeCudaDevice {
  const char* name = "Fake H200";
  unsigned char uuid_first = 0x10;  // the first byte; the others are 0
  int major = 9, minor = 0;
  size_t memory_total = size_t{8} << 30, memory_of_others = 0;  // bytes
  size_t memory_used = 0;
};

// The environment variable WEIR_FAKE_CUDA sets some of it for a program under test: "count=2,version=12040,
// major=7,minor=0,memory_mb=512,init=100,mig=1,stuck_after=3".
struct FakeCudaState {
  int init_error = 0;
  int version = 13000;
  int count = 1;
  FakeCudaDevice devices[4];
  int stuck_after = -1;  // waits that succeed before the context is lost; -1: it never is
  int stuck = 0;         // the error of a lost context
  double now_ms = 0;     // the device's clock
  double bytes_per_ms = 25e6;
  size_t uploaded = 0, downloaded = 0;  // bytes
  int launches = 0, waits = 0;
  int streams = 0, events = 0, modules = 0, blocks = 0, contexts = 0;  // alive
  unsigned context_flags = 0, event_flags = 0;                         // as last asked for
  // The thread that records a graph; 0: none does. What others then ask of the driver spoils the recording.
  size_t recording_thread = 0;
  bool spoilt = false;
};

// The library's function "FakeCuda" gives its state.
using FakeCudaFunction = FakeCudaState*();
