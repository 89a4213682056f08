// The options of a load: target, requests, levels, length and claim. Messages name them by the flags of
// `weir load`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/choices.h"
#include "base/error.h"
#include "infer/choices.h"
#include "load/verdict/mlperf.h"
#include "monitor/server_watch.h"

namespace weir::load {

// --check without a value: responses are compared with those that --input-data expects.
inline constexpr const char* kCheckData = "validation_data";

// perf_analyzer's windows: of time, or of requests.
enum class Windows : uint8_t { kTime, kCount };
inline constexpr Choices<Windows, 2> kWindows{
    {{Windows::kTime, "time_windows"}, {Windows::kCount, "count_windows"}}};

// Where the server's part of the time comes from: its statistics, or what it says with each response.
enum class SplitSource : uint8_t { kStatistics, kResponse };
inline constexpr Choices<SplitSource, 2> kSplits{
    {{SplitSource::kStatistics, "statistics"}, {SplitSource::kResponse, "response"}}};

struct LoadOptions {
  std::string target;  // MODEL, as for a run
  std::string model, version, url;
  infer::Protocol protocol = infer::Protocol::kHttp;     // of -i
  infer::Balance balance = infer::Balance::kRoundRobin;  // over several servers
  std::string endpoint, method = "POST", content_type = "application/json";
  std::vector<std::string> bodies, headers;
  std::string concurrency_range, rate_range, intervals, trace;
  infer::Distribution distribution = infer::Distribution::kConstant;  // of rate_range
  std::optional<MlperfScenario> scenario;
  double trace_speed = 1, trace_scale = 1;
  double variation = 2;
  bool async = false, sync = false;
  int batch = 1, connections = 0, channels = 1, threads = 0;
  int priority = 0;  // 0: the model's default
  std::vector<std::string> shapes, input_data, data;
  infer::Payload payload = infer::Payload::kTensor;
  infer::SharedMemory shared_memory = infer::SharedMemory::kNone;
  std::string recipe, string_data;
  std::vector<std::string> allow_links;  // folders that links of a model in this process may lead below
  int64_t output_shared_memory = 0;
  int string_length = 128, pool = 1024;
  bool zero_input = false;
  std::string check;  // kCheckData, a predictions file or a model; empty: nothing is checked
  double duration_s = 0, warm_up_s = 1, request_timeout_ms = 0, measurement_interval_ms = 0;
  Windows measurement_mode = Windows::kTime;
  int64_t measurement_request_count = 0, request_count = 0, warm_up_requests = 0, seed = 1;
  int repeats = 0, max_trials = 10, most_in_flight = 16384;
  double stability_percentage = 10;
  double percentile = 0, latency_threshold_ms = 0;
  monitor::ServerPlace server;
  SplitSource split = SplitSource::kStatistics;
  std::string engine, device, precision, samples;
  int engine_threads = 0, engine_streams = 0;
  bool cuda_graph = false;
  std::optional<infer::Preprocess> preprocess;  // nothing: as the model says
  bool find_peak = false, calibrate = false;
  double target_rate = 0;
  int depth = 0;

  // Whether the server is asked for its durations with each response.
  bool splits_responses() const { return split == SplitSource::kResponse; }
  bool is_open() const { return !rate_range.empty() || !intervals.empty() || !trace.empty(); }
  // The percentile that is judged, 0 to 1: the median unless one was asked for.
  double judged_percentile() const { return percentile > 0 ? percentile / 100 : 0.5; }
};

// kInvalidArgument names an option that would have no effect beside the others, or options that contradict
// one another.
Status CheckOptions(const LoadOptions& options);

}  // namespace weir::load
