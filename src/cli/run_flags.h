// The flags of `weir run`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/server_watch.h"
#include "run/backend.h"

namespace weir::cli {

struct RunFlags : run::BackendOptions {
  std::vector<std::string> data;
  std::string answers, json;
  int decode_threads = 0, repeat_data = 1, top = 5;
  int64_t max_file_bytes = 256 << 20;
  monitor::ServerPlace server;
  bool no_files = false, strict = false;
};

}  // namespace weir::cli
