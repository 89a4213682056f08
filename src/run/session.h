// A run from what a person asks for to its result.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text_style.h"
#include "dataset/source.h"
#include "monitor/server_watch.h"
#include "results/run_result.h"
#include "run/backend.h"

namespace weir::run {

struct RunRequest : BackendOptions {
  std::vector<std::string> data;  // files, folders or prepared sets
  std::string answers;            // predictions file; "-": standard output; empty: none
  std::string json;               // where the result goes
  int decode_threads = 0;         // 0: one for each core; 1 in sync mode
  int repeat_data = 1;            // passes over the data
  int top = 5;                    // classes in each answer
  uint64_t max_file_bytes = uint64_t{256} << 20;
  bool no_files = false;             // loads everything before the clock starts
  monitor::ServerPlace server;       // that is watched meanwhile
  std::vector<std::string> command;  // that repeats the run
};

// Receives what the person at the terminal should see.
struct SessionHooks {
  std::function<void(const std::string&)> note;
  std::function<void(double elapsed_s, int64_t done, int64_t total, const std::string& extra)> progress;
  std::function<void()> progress_ended;
};

struct RunEnd {
  results::RunResult result;
  std::string text;          // for people
  Status whole;              // kIo where a store no longer gave an object: the answers so far are in `result`
  bool interrupted = false;  // by `stop`
  int64_t failed = 0, rejected = 0;  // pictures
};

// Opens the backend and runs it over the data. Blocks. kInvalidArgument for options that do not go together;
// kNotFound without pictures; other errors are those of the backend, the data and the outputs.
Result<RunEnd> RunOver(const RunRequest& request, const monitor::ServerAccess& access, const TextStyle& style,
                       const SessionHooks& hooks, const Clock& clock, const std::stop_token& stop);

// Returns the application's options for a loaded backend.
Options OptionsFor(const RunRequest& request, int batch, int in_flight, int cpus);

}  // namespace weir::run
