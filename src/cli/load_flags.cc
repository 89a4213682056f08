#include "cli/load_flags.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/flags.h"
#include "cli/server_place.h"

namespace weir::cli {
namespace {

void AddWhere(Flags& flags, LoadFlags& w) {
  flags.Optional("MODEL", w.target,
                 "an .onnx file, a model folder, or http://HOST:PORT/NAME or grpc://HOST:PORT/NAME");
  flags.Text("-m,--model-name", w.model, "the model's name, with -u");
  flags.Text("-x,--model-version", w.version, "its version; else the newest");
  flags.Text("-u,--url", w.url, "HOST:PORT of the server; else localhost:8000, or 8001 with -i grpc");
  flags.Choice("-i,--protocol", w.protocol, {"http", "grpc", "HTTP", "gRPC", "GRPC"}, "of the server at -u");
  flags.Integer("--connections", w.connections, 0, 65536,
                "HTTP connections at most; 0: as many as requests in flight");
  flags.Integer("--channels", w.channels, 1, 1024, "gRPC connections, used in turn");
  flags.Integer(
      "--io-threads", w.threads, 0, 256,
      "threads that send and read beside the one that keeps the schedule; 0: that one does all (async)");
  flags.Optional(
      "--endpoint", w.endpoint,
      "http://HOST:PORT/PATH instead of a model: anything that answers HTTP, with 2xx when all is well");
  flags.Texts("--body", w.bodies, "of --endpoint: files, each the body of a request, sent in turn", false);
  flags.Text("--method", w.method, "of --endpoint");
  flags.Text("--content-type", w.content_type, "of the --body files");
  flags.Repeated("-H,--header", w.headers,
                 "\"Name: value\", of every request; over gRPC its metadata; can be given again");
  flags.Text("--engine", w.engine,
             "in this process: onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms");
  flags.Text("--precision", w.precision, "in this process: arithmetic where the model says float");
  flags.Integer("--engine-threads", w.engine_threads, 0, 4096,
                "in this process: CPU threads of the engine; 0: all");
  flags.Integer("--engine-streams", w.engine_streams, 0, 4096,
                "in this process: batches side by side; 0: one a thread");
}

void AddLoad(Flags& flags, LoadFlags& w) {
  flags.Text("--concurrency-range", w.concurrency_range,
             "requests in flight: 8, 1:16:4, 1:64:2x or 1,8,32 (1 where nothing is said)");
  flags.Text("--request-rate-range", w.rate_range,
             "requests a second, whatever is still out; the same forms");
  flags.Choice("--request-distribution", w.distribution, {"constant", "poisson", "gamma"},
               "gaps between requests at a rate");
  flags.Number("--gamma-variation", w.variation, 0.01, 100, "of gamma gaps: standard deviation over mean");
  flags.Text("--request-intervals", w.intervals,
             "a file of gaps, one a line, in microseconds, played again and again");
  flags.Integer("--max-in-flight", w.most_in_flight, 1, 1 << 20,
                "at a rate: requests out at most; more wait, and show as slip");
  flags.Switch("-a,--async", w.async, "whoever reads an answer sends the next request (default)");
  flags.Switch("--sync", w.sync, "a thread for each request in flight, which waits");
  flags.Integer("-b,--batch-size", w.batch, 1, 65536, "rows in a request");
  flags.Integer("--priority", w.priority, 0, 65536,
                "priority of every request, 1 the highest; 0: the model's default (the request parameter "
                "\"priority\", for models with priority_levels in dynamic_batching)");
  flags.Number("--request-timeout-ms", w.request_timeout_ms, 0, 3.6e6,
               "a request without an answer after so long has failed; 0: none");
}

void AddData(Flags& flags, LoadFlags& w) {
  flags.Texts("--input-data", w.input_data,
              "random, zero, a JSON file as perf_analyzer's, or a folder with a file for each input", false);
  flags.Texts("--shape", w.shapes, "NAME:3,224,224 for an input with free dimensions; can be given again",
              false);
  flags.Switch("-z,--zero-input", w.zero_input, "zeros instead of random values");
  flags.Text("--string-data", w.string_data, "every element of BYTES inputs");
  flags.Integer("--string-length", w.string_length, 0, 1 << 20, "of random BYTES elements");
  flags.Integer("--pool", w.pool, 1, 1 << 20, "requests with different bytes, sent in turn");
  flags.Texts("--data", w.data, "pictures: files, folders or prepared sets, prepared by the model's recipe",
              false);
  flags.Choice("--payload", w.payload, {"tensor", "pixels", "image"}, "what pictures are sent as");
  flags.Text("--recipe", w.recipe, "how pictures become the model's input; else the model's own");
  flags.Choice("--shared-memory", w.shared_memory, {"none", "system"},
               "system: inputs and outputs stay in memory that the server on this machine sees too");
  flags.Integer64("--output-shared-memory-size", w.output_shared_memory, 0, int64_t{1} << 30,
                  "bytes for each output in it; 0: by the model's shapes");
  flags.TextOrBare(
      "--check", w.check, load::kCheckData,
      "wrong answers are failures: held against the validation_data of --input-data, against the CSV file of "
      "weir run --answers (with --data: the best class of each picture), or against a model in this process");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "of the data and of the schedule");
}

void AddLength(Flags& flags, LoadFlags& w) {
  flags.Number("--duration", w.duration_s, 0, 86400, "seconds that are measured at each level; 0: 10");
  flags.Integer64("--request-count", w.request_count, 0, int64_t{1} << 40,
                  "requests that are measured, instead of a time");
  flags.Integer("--repeats", w.repeats, 0, 1000, "of each level; 0: 1");
  flags.Number("--warmup", w.warm_up_s, 0, 3600, "seconds that are not measured, before each");
  flags.Integer64("--warmup-request-count", w.warm_up_requests, 0, int64_t{1} << 40,
                  "requests that are not measured, at least");
  flags.Number("-p,--measurement-interval", w.measurement_interval_ms, 0, 8.64e7,
               "ms; perf_analyzer's: three repeats of so long");
  flags.Choice("--measurement-mode", w.measurement_mode, {"time_windows", "count_windows"},
               "perf_analyzer's: by time or by count");
  flags.Integer64("--measurement-request-count", w.measurement_request_count, 0, int64_t{1} << 40,
                  "perf_analyzer's, with count_windows: three repeats of so many requests");
  flags.Number("-s,--stability-percentage", w.stability_percentage, 0.01, 1000,
               "repeats whose throughput or latency lie further apart are SUSPECT");
  flags.Integer("-r,--max-trials", w.max_trials, 1, 1000, "perf_analyzer's: repeats at most");
}

void AddClaim(Flags& flags, LoadFlags& w) {
  flags.Number("--percentile", w.percentile, 0, 99.999,
               "the latency that is judged: this percentile; 0: the median");
  flags.Number(
      "-l,--latency-threshold", w.latency_threshold_ms, 0, 3.6e6,
      "ms: is the percentile of the response time below it? Levels after the first \"no\" are left out");
  AddServerPlace(flags, w.server);
  flags.Choice(
      "--split", w.split, {"statistics", "response"},
      "where the server's part of the time is from: its statistics before and after, or what weir's "
      "server tells with each response, which costs a little more and tells of the slowest ones too");
  flags.Switch("--calibrate", w.calibrate,
               "measure what the generator itself can do, against a server that does nothing (done unasked "
               "where it was "
               "busy for more than a quarter of the time)");
  flags.Switch("--find-peak", w.find_peak,
               "the largest rate at which --percentile stays below --latency-threshold; --request-rate-range "
               "is where it begins");
  flags.Choice(
      "--scenario", w.scenario, {"single-stream", "multi-stream", "server", "offline"},
      "MLPerf's: what it plays, its length and its rules (--target-rate for server, --depth for offline)");
  flags.Number("--target-rate", w.target_rate, 0, 1e8, "of the server scenario, requests a second");
  flags.Integer("--depth", w.depth, 0, 65536, "of the offline scenario: requests out at a time");
  flags.Text("--validate", w.validate, "hold a stored --json result against the rules, and run nothing");
  flags.Text("-f,--csv", w.csv, "write perf_analyzer's table of the levels to this file");
  flags.Text("--samples", w.samples, "write every measured request to this file");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  flags.Switch("-v,--verbose", w.verbose, "every repeat, not only their sum");
}

// perf_analyzer's flags that have another name here, or none.
struct Foreign {
  const char* name;
  const char* instead;
};
constexpr Foreign kForeign[] = {
    {"--binary-search", "--find-peak searches by rate"},
    {"--bls-composing-models", "--server-pid watches the server's processes"},
    {"--collect-metrics", "--metrics-url alone asks for them"},
    {"--max-threads", "one thread sends and reads; --io-threads gives it others"},
    {"--model-repository", "name the model's folder as MODEL"},
    {"--profile-export-file", "--samples keeps every request, --json the result"},
    {"--verbose-csv", "-f writes the columns, --json everything"},
    {"--service-kind", "any server of the Open Inference Protocol, or a model in this process"},
    {"--request-parameter", "--priority sends that parameter, and no other is sent"},
    {"--streaming", "gRPC calls are sent one by one"},
    {"--log-frequency", "each level is told when it ends"},
    {"--request-period", "--request-rate-range, or --request-intervals"},
    {"--periodic-concurrency-range", "--concurrency-range plays level after level"},
    {"-t", "--concurrency-range"},
    {"-c", "--concurrency-range with --latency-threshold"},
    {"-d", "--concurrency-range with --latency-threshold"}};

}  // namespace

std::optional<int> ParseLoadFlags(const std::vector<std::string>& arguments, LoadFlags& w) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    for (const Foreign& foreign : kForeign) {
      if (name != foreign.name) continue;
      std::fprintf(stderr, "weir load: it takes no \"%s\" as perf_analyzer does: %s; leave it out\n",
                   foreign.name, foreign.instead);
      return 2;
    }
  }
  Flags flags("load",
              "Puts load on a server, or on a model in this process, and says what it takes: every request "
              "timed from the "
              "moment it was due, every figure with a verdict.",
              "weir load -m resnet50 -u localhost:8001 -i grpc --concurrency-range 1:16:2x");
  AddWhere(flags, w);
  AddLoad(flags, w);
  AddData(flags, w);
  AddLength(flags, w);
  AddClaim(flags, w);
  const std::optional<int> status = flags.Parse(arguments);
  w.given = flags.Given();
  return status;
}

Status CheckFlags(const LoadFlags& flags) {
  for (const std::string& name : flags.given) {
    if (!flags.validate.empty() && name != "--validate" && name != "--json")
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} says nothing here: --validate runs nothing", name));
  }
  return load::CheckOptions(flags);
}

}  // namespace weir::cli
