// What `weir load` was asked for. The names and meanings are perf_analyzer's where it has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/server_watch.h"
#include "infer/tensor.h"
#include "load/generator/generator.h"

namespace weir::cli {

// --check with nothing after it: against what --input-data expects.
inline constexpr const char* kCheckData = "validation_data";

struct LoadFlags {
  std::string target;  // MODEL, as for run
  std::string model, version, url, protocol = "http";
  std::string endpoint, method = "POST", content_type = "application/json";
  std::vector<std::string> bodies, headers;
  std::string concurrency_range, rate_range, distribution = "constant", intervals, scenario;
  double variation = 2;
  bool async = false, sync = false;
  int batch = 1, connections = 0, channels = 1, threads = 0;
  int priority = 0;  // 0: the model's default
  std::vector<std::string> shapes, input_data, data;
  std::string payload = "tensor", recipe, string_data, shared_memory = "none";
  int64_t output_shared_memory = 0;
  int string_length = 128, pool = 1024;
  bool zero_input = false;
  std::string check;  // kCheckData, a predictions file or a model; empty: nothing is checked
  double duration_s = 0, warm_up_s = 1, request_timeout_ms = 0, measurement_interval_ms = 0;
  std::string measurement_mode = "time_windows";
  int64_t measurement_request_count = 0, request_count = 0, warm_up_requests = 0, seed = 1;
  int repeats = 0, max_trials = 10, most_in_flight = 16384;
  double stability_percentage = 10;
  double percentile = 0, latency_threshold_ms = 0;
  ServerPlace server;
  std::string split = "statistics";
  std::string engine, precision, csv, json, samples, validate;
  int engine_threads = 0, engine_streams = 0;
  bool find_peak = false, verbose = false, calibrate = false;
  double target_rate = 0;
  int depth = 0;
  std::vector<std::string> given;  // by their long names: Flags::Given

  // The server is asked for its durations with each response.
  bool splits_responses() const { return split == "response"; }
  bool is_grpc() const { return protocol != "http" && protocol != "HTTP"; }  // of -i
  bool is_open() const { return !rate_range.empty() || !intervals.empty(); }
};

// The exit status where there is nothing more to do.
std::optional<int> ParseLoadFlags(const std::vector<std::string>& arguments, LoadFlags& flags);

// kInvalidArgument names a flag that would say nothing beside the others, or flags that contradict one
// another.
Status CheckFlags(const LoadFlags& flags);

// "a", "a:b", "a:b:step", "a:b:2x" (each twice the one before) or "a,b,c". kInvalidArgument names what is
// wrong.
Result<std::vector<double>> ParseRange(const std::string& text);
// "NAME:3,224,224", any number of them.
Result<std::map<std::string, infer::Shape>> ParseShapes(const std::vector<std::string>& texts);

// One setting that is played.
struct LoadLevel {
  load::Scenario scenario;
  std::string name;  // "concurrency 8", "rate 200/s"
};
// REQUIRES: CheckFlags finds nothing. kInvalidArgument for a range or a trace that is none.
Result<std::vector<LoadLevel>> LevelsOf(const LoadFlags& flags);

// How long each level is played, and how often; told before the first.
struct LoadLength {
  Duration length{};
  int64_t requests = 0;  // instead of the length, above 0
  int repeats = 1;
  std::string note;  // what was made of flags that ask for another way; empty: nothing
};
LoadLength LengthOf(const LoadFlags& flags);

}  // namespace weir::cli
