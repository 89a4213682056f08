#include <fmt/format.h>

#include <utility>
#include <vector>

#include "infer/device.h"
#include "load/session/level.h"

namespace weir::load {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// A flag that would be read and then mean nothing.
struct Idle {
  const char* name;
  bool given_in_vain;
  const char* why;
};

Status Refuse(const std::vector<Idle>& flags) {
  for (const auto& [name, given_in_vain, why] : flags) {
    if (given_in_vain) return Invalid(fmt::format("{} says nothing here: {}", name, why));
  }
  return {};
}

Status CheckWhere(const LoadOptions& f) {
  const LoadOptions usual;
  return Refuse(
      {{"-i", f.protocol != usual.protocol && !f.target.empty(), "MODEL says how it is reached"},
       {"--body", !f.bodies.empty() && f.endpoint.empty(), "it is of --endpoint"},
       {"--method", f.method != usual.method && f.endpoint.empty(), "it is of --endpoint"},
       {"--content-type", f.content_type != usual.content_type && f.bodies.empty(), "it is of --body"}});
}

Status CheckData(const LoadOptions& f) {
  const LoadOptions usual;
  const bool has_pictures = !f.data.empty();
  const bool has_file =
      !f.input_data.empty() && f.input_data.front() != "random" && f.input_data.front() != "zero";
  const bool is_zero = f.zero_input || (!f.input_data.empty() && f.input_data.front() == "zero");
  const char* const pictures = "--data says what is sent";
  const char* const file = "--input-data says what is sent";
  const bool string_length = f.string_length != usual.string_length;
  return Refuse(
      {{"--recipe", !f.recipe.empty() && !has_pictures, "it is of the pictures of --data"},
       {"--input-data", !f.input_data.empty() && has_pictures, pictures},
       {"--shape", !f.shapes.empty() && has_pictures, pictures},
       {"--zero-input", f.zero_input && has_pictures, pictures},
       {"--string-data", !f.string_data.empty() && has_pictures, pictures},
       {"--string-length", string_length && has_pictures, pictures},
       {"--zero-input", f.zero_input && !f.input_data.empty(), file},
       {"--string-data", !f.string_data.empty() && has_file, file},
       {"--string-length", string_length && has_file, file},
       {"--string-length", string_length && !f.string_data.empty(), "--string-data says every element"},
       {"--string-length", string_length && is_zero, "zeros are texts without characters"},
       {"--pool", f.pool != usual.pool && has_file, file},
       {"--pool", f.pool != usual.pool && is_zero, "zeros are one request"},
       {"--output-shared-memory-size",
        f.output_shared_memory > 0 && f.shared_memory == infer::SharedMemory::kNone,
        "it is of --shared-memory system"}});
}

Status CheckLength(const LoadOptions& f) {
  const LoadOptions usual;
  const char* const said = "the length is said already";
  const bool is_timed = f.duration_s > 0 || f.request_count > 0;
  const bool trials = f.max_trials != usual.max_trials;
  return Refuse({{"-r", trials && f.repeats > 0, "--repeats says how many"},
                 {"--measurement-mode", f.measurement_mode == Windows::kCount && f.duration_s > 0, said},
                 {"--measurement-request-count", f.measurement_request_count > 0 && is_timed, said},
                 {"--duration", f.duration_s > 0 && f.request_count > 0, "--request-count says the length"}});
}

Status CheckTrace(const LoadOptions& f) {
  const char* const rate = "--trace says the rate";
  const char* const length = "--trace says the length: --trace-speed changes it";
  return Refuse(
      {{"--request-rate-range", !f.rate_range.empty(), rate},
       {"--request-intervals", !f.intervals.empty(), rate},
       {"--find-peak", f.find_peak, rate},
       {"--duration", f.duration_s > 0, length},
       {"--request-count", f.request_count > 0, length},
       {"--measurement-interval", f.measurement_interval_ms > 0, length},
       {"--measurement-request-count", f.measurement_request_count > 0, length},
       {"--measurement-mode", f.measurement_mode == Windows::kCount, length},
       {"--warmup-request-count", f.warm_up_requests > 0, "--warmup gives the seconds before a trace"}});
}

Status CheckLoad(const LoadOptions& f) {
  const LoadOptions usual;
  TRY_STATUS(Refuse(
      {{"--depth", f.depth > 0 && f.scenario != MlperfScenario::kOffline, "it is of --scenario offline"},
       {"--target-rate", f.target_rate > 0 && f.scenario != MlperfScenario::kServer,
        "it is of --scenario server"},
       {"--request-distribution", f.distribution != usual.distribution && f.rate_range.empty(),
        "it is of --request-rate-range"},
       {"--gamma-variation", f.variation != usual.variation && f.distribution != infer::Distribution::kGamma,
        "it is of --request-distribution gamma"},
       {"--trace-speed", f.trace_speed != usual.trace_speed && f.trace.empty(), "it is of --trace"},
       {"--trace-scale", f.trace_scale != usual.trace_scale && f.trace.empty(), "it is of --trace"},
       {"--max-in-flight", f.most_in_flight != usual.most_in_flight && !f.is_open(), "it is of a rate"}}));
  if (f.async && f.sync) return Invalid("--async and --sync contradict each other: leave one out");
  if (f.is_open() && !f.concurrency_range.empty())
    return Invalid("--concurrency-range waits for answers and a rate does not: leave one of them out");
  if (!f.rate_range.empty() && !f.intervals.empty())
    return Invalid("--request-intervals makes its own rate: leave --request-rate-range out");
  if (!f.trace.empty()) TRY_STATUS(CheckTrace(f));
  if (f.is_open() && f.sync)
    return Invalid("--sync waits for answers, and a rate does not: leave one of them out");
  return {};
}

Status CheckScenario(const LoadOptions& f) {
  if (!f.scenario) return {};
  if (f.is_open() || !f.concurrency_range.empty() || f.find_peak)
    return Invalid(
        "--scenario says what is played: leave --concurrency-range, the rates and --find-peak out");
  const LoadOptions usual;
  return Refuse({{"--sync", f.sync, "--scenario says who waits"},
                 {"-r", f.max_trials != usual.max_trials, "--scenario is one run"},
                 {"-s", f.stability_percentage != usual.stability_percentage, "--scenario is one run"},
                 {"--repeats", f.repeats > 1, "--scenario is one run: start it again for another"},
                 {"--measurement-interval", f.measurement_interval_ms > 0,
                  "--scenario is one run: --duration says how long"},
                 {"--measurement-request-count", f.measurement_request_count > 0,
                  "--scenario is one run: --request-count says how long"},
                 {"--measurement-mode", f.measurement_mode == Windows::kCount,
                  "--scenario is one run: --request-count says how long"}});
}

Status CheckPeak(const LoadOptions& f) {
  if (!f.find_peak) return {};
  if (f.latency_threshold_ms <= 0) return Invalid("--find-peak wants a bound: --latency-threshold MS");
  if (!f.intervals.empty())
    return Invalid("--find-peak plays other rates, and a trace has one: leave --request-intervals out");
  if (f.rate_range.empty())
    return Invalid("--find-peak wants a rate to begin with: --request-rate-range RATE");
  if (TRY(ParseRange(f.rate_range)).size() > 1)
    return Invalid(
        fmt::format("--find-peak begins at one rate, and --request-rate-range {} has several: give the first",
                    f.rate_range));
  const char* const decided = "each run of --find-peak has as many as decide --percentile";
  return Refuse({{"--request-count", f.request_count > 0, decided},
                 {"--measurement-request-count", f.measurement_request_count > 0, decided},
                 {"--measurement-mode", f.measurement_mode == Windows::kCount, decided}});
}

}  // namespace

Status CheckOptions(const LoadOptions& options) {
  TRY_STATUS(CheckWhere(options));
  TRY_STATUS(CheckLoad(options));
  TRY_STATUS(CheckScenario(options));
  TRY_STATUS(CheckPeak(options));
  TRY_STATUS(CheckData(options));
  return CheckLength(options);
}

}  // namespace weir::load
