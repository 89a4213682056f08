#include "cli/load_flags.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/secrets.h"
#include "cli/cluster_flags.h"
#include "cli/flags.h"
#include "cli/server_place.h"
#include "load/cluster/cluster_load.h"
#include "load/session/foreign.h"
#include "oip/client.h"

namespace weir::cli {
namespace {

void AddWhere(Flags& flags, LoadFlags& w) {
  flags.Optional("MODEL", w.target,
                 "an .onnx file, a model folder, or http://HOST:PORT/NAME or grpc://HOST:PORT/NAME; "
                 "HOST:PORT,HOST:PORT for several servers");
  flags.OneOf("--balance", w.balance, infer::kBalances,
              "policy over several servers; grpc-round-robin is the gRPC library's own");
  flags.Text("-m,--model-name", w.model, "name of the model on the server at -u");
  flags.Text("-x,--model-version", w.version, "version of the model (default: the newest)");
  flags.Text("-u,--url", w.url,
             "HOST:PORT of the server, or of several with commas (default localhost:8000, or localhost:8001 "
             "with -i grpc)");
  flags.OneOf("-i,--protocol", w.protocol, infer::kProtocolSpellings, "protocol of the server at -u");
  flags.Integer("--connections", w.connections, 0, 65536,
                "most HTTP connections (0: one for each request in flight)");
  flags.Integer("--channels", w.channels, 1, 1024, "number of gRPC connections, used in turn");
  flags.Integer(
      "--io-threads", w.threads, 0, 256,
      "threads that send and read, besides the thread of the schedule (0: that thread does it all)");
  flags.Optional(
      "--endpoint", w.endpoint,
      "http://HOST:PORT/PATH to load instead of a model; any HTTP server, a 2xx status is success");
  flags.Texts("--body", w.bodies, "files for --endpoint; each is the body of a request, sent in turn", false);
  flags.Text("--method", w.method, "method of the requests to --endpoint");
  flags.Text("--content-type", w.content_type, "content type of the --body files");
  flags.Repeated("-H,--header", w.headers,
                 "header of every request, \"Name: value\"; metadata over gRPC; may be given again");
  flags.Text("--engine", w.engine,
             "engine of a model in this process: onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms");
  flags.Text("--device", w.device,
             "device of a model in this process, as in weir run: cpu (default), cuda:N, gpu:N, npu");
  flags.OneOf("--preprocess", w.preprocess, infer::kPreprocess,
              "place where pixels are normalised, of a model in this process, as in weir run; with gpu the "
              "requests are pixels");
  flags.Switch("--cuda-graph", w.cuda_graph, "launch each batch whole (CUDA, in this process)");
  flags.Text("--precision", w.precision, "arithmetic of a model in this process, as in weir run");
  flags.Integer("--engine-threads", w.engine_threads, 0, 4096,
                "CPU threads of the engine in this process (0: all)");
  flags.Integer("--engine-streams", w.engine_streams, 0, 4096,
                "batches that the engine in this process computes at the same time (0: one for each thread)");
}

void AddLoad(Flags& flags, LoadFlags& w) {
  flags.Text("--concurrency-range", w.concurrency_range,
             "levels of requests in flight: 8, 1:16:4, 1:64:2x or 1,8,32 (default 1)");
  flags.Text("--request-rate-range", w.rate_range,
             "levels of requests per second, sent on schedule whatever is unanswered; same forms");
  flags.OneOf("--request-distribution", w.distribution, infer::kDistributions,
              "distribution of the gaps between requests at a rate");
  flags.Number("--gamma-variation", w.variation, 0.01, 100, "standard deviation over mean of gamma gaps");
  flags.Text("--request-intervals", w.intervals,
             "file of gaps in microseconds, one a line, repeated to the end of the level");
  flags.Text("--trace", w.trace,
             "CSV file of the rate over time, SECONDS,REQUESTS_PER_SECOND, played once by a Poisson process");
  flags.Number("--trace-speed", w.trace_speed, 0.001, 1e6,
               "divisor of the times of --trace (60: an hour a minute)");
  flags.Number("--trace-scale", w.trace_scale, 1e-6, 1e6, "factor of the rates of --trace");
  flags.Integer("--max-in-flight", w.most_in_flight, 1, 1 << 20,
                "most requests in flight at a rate; further ones wait, and the wait is reported as slip");
  flags.Switch("-a,--async", w.async,
               "send the next request from the thread that reads a response (default)");
  flags.Switch("--sync", w.sync, "one blocking thread for each request in flight");
  flags.Integer("-b,--batch-size", w.batch, 1, 65536, "batch size: rows in each request");
  flags.Integer(
      "--priority", w.priority, 0, 65536,
      "priority of every request, 1 the highest, for models with priority_levels (0: the model's default)");
  flags.Number("--request-timeout-ms", w.request_timeout_ms, 0, 3.6e6,
               "milliseconds after which an unanswered request has failed (0: never)");
}

void AddData(Flags& flags, LoadFlags& w) {
  flags.Texts("--input-data", w.input_data,
              "input values: random, zero, a JSON file in perf_analyzer's form, or a folder with a file for "
              "each input",
              false);
  flags.Texts("--shape", w.shapes,
              "shape of an input with free dimensions, as in NAME:3,224,224; may be given again", false);
  flags.Switch("-z,--zero-input", w.zero_input, "send zeros instead of random values");
  flags.Text("--string-data", w.string_data, "text of every element of BYTES inputs");
  flags.Integer("--string-length", w.string_length, 0, 1 << 20, "length of random BYTES elements, in bytes");
  flags.Integer("--pool", w.pool, 1, 1 << 20, "number of different requests, sent in turn");
  flags.Texts("--data", w.data,
              "pictures to send, prepared by the model's recipe: files, folders or prepared sets", false);
  flags.OneOf("--payload", w.payload, infer::kPayloads, "form in which pictures are sent");
  flags.Text("--recipe", w.recipe,
             "recipe that makes the model's input of a picture (default: the model's own)");
  flags.Repeated(
      "--allow-link", w.allow_links,
      "Folder that links in the folder of a model in this process may lead below. May be given again.");
  flags.OneOf("--shared-memory", w.shared_memory, infer::kSharedMemories,
              "system: inputs and outputs stay in memory shared with a server on this machine");
  flags.Integer64("--output-shared-memory-size", w.output_shared_memory, 0, int64_t{1} << 30,
                  "bytes of shared memory for each output (0: from the model's shapes)");
  flags.TextOrBare("--check", w.check, load::kCheckData,
                   "count wrong answers as failures. Expected answers: the validation_data of --input-data "
                   "(default), the CSV file of weir run --answers (best class of each picture of --data), or "
                   "a model to run in this process");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "seed of the data and of the schedule");
}

void AddLength(Flags& flags, LoadFlags& w) {
  flags.Number("--duration", w.duration_s, 0, 86400, "measured seconds at each level (0: 10)");
  flags.Integer64("--request-count", w.request_count, 0, int64_t{1} << 40,
                  "measured requests at each level, instead of --duration");
  flags.Integer("--repeats", w.repeats, 0, 1000, "repeats of each level (0: 1)");
  flags.Number("--warmup", w.warm_up_s, 0, 3600, "unmeasured seconds before each repeat");
  flags.Integer64("--warmup-request-count", w.warm_up_requests, 0, int64_t{1} << 40,
                  "least number of unmeasured requests before each repeat");
  flags.Number("-p,--measurement-interval", w.measurement_interval_ms, 0, 8.64e7,
               "as in perf_analyzer: three repeats of this many milliseconds");
  flags.OneOf("--measurement-mode", w.measurement_mode, load::kWindows,
              "as in perf_analyzer: windows of time or of requests");
  flags.Integer64("--measurement-request-count", w.measurement_request_count, 0, int64_t{1} << 40,
                  "as in perf_analyzer, with count_windows: three repeats of this many requests");
  flags.Number(
      "-s,--stability-percentage", w.stability_percentage, 0.01, 1000,
      "percent by which the throughput or latency of repeats may differ; beyond it a level is SUSPECT");
  flags.Integer("-r,--max-trials", w.max_trials, 1, 1000, "as in perf_analyzer: most repeats");
}

void AddClaim(Flags& flags, LoadFlags& w) {
  flags.Number("--percentile", w.percentile, 0, 99.999,
               "percentile of the response time that is judged (0: the median)");
  flags.Number("-l,--latency-threshold", w.latency_threshold_ms, 0, 3.6e6,
               "milliseconds that the judged percentile must stay below; levels after the first that fails "
               "are left out");
  AddServerPlace(flags, w.server);
  flags.OneOf("--split", w.split, load::kSplits,
              "source of the server's part of the time: its statistics before and after, or the times that "
              "weir's server reports with each response (slightly dearer; covers the slowest requests too)");
  flags.Switch("--calibrate", w.calibrate,
               "measure the generator's own maximum against a server that does nothing (automatic if the "
               "generator was busy for over a quarter of the time)");
  flags.Switch("--find-peak", w.find_peak,
               "find the largest rate at which --percentile stays below --latency-threshold, starting at "
               "--request-rate-range");
  flags.OneOf("--scenario", w.scenario, load::kMlperfScenarios,
              "MLPerf scenario, with its length and rules (--target-rate for server, --depth for offline)");
  flags.Number("--target-rate", w.target_rate, 0, 1e8, "requests per second of the server scenario");
  flags.Integer("--depth", w.depth, 0, 65536, "requests in flight of the offline scenario");
  flags.Text("--validate", w.validate, "check a stored --json result against the rules; run nothing");
  flags.Text("-f,--csv", w.csv, "write perf_analyzer's table of the levels to this file");
  flags.Text("--samples", w.samples, "write every measured request to this file");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  flags.Switch("-v,--verbose", w.verbose, "print every repeat, not only their sum");
}

}  // namespace

std::optional<int> ParseLoadFlags(const std::vector<std::string>& arguments, LoadFlags& w) {
  if (const Status known = load::CheckForeign(arguments); !known) {
    std::fprintf(stderr, "weir load: %s\n", WithoutSecrets(known.error().message).c_str());
    return 2;
  }
  Flags flags("load",
              "Puts load on a server, or on a model in this process, and measures the response. Each request "
              "is timed from its planned moment. Each figure has a verdict.",
              "weir load -m resnet50 -u localhost:8001 -i grpc --concurrency-range 1:16:2x");
  AddWhere(flags, w);
  AddLoad(flags, w);
  AddData(flags, w);
  AddLength(flags, w);
  AddClaim(flags, w);
  AddClusterFlags(flags, w.join);
  const std::optional<int> status = flags.Parse(arguments);
  w.given = flags.Given();
  return status;
}

std::vector<NamedPath> PathsOf(const LoadFlags& w) {
  std::vector<NamedPath> paths{{"--request-intervals", w.intervals},
                               {"--trace", w.trace},
                               {"--recipe", w.recipe},
                               {"--samples", w.samples},
                               {"--csv", w.csv},
                               {"--validate", w.validate}};
  const auto add = [&](const char* flag, const std::vector<std::string>& list) {
    for (const std::string& each : list) paths.push_back({flag, each});
  };
  add("--body", w.bodies);
  add("--data", w.data);
  for (const std::string& each : w.input_data)
    if (each != "random" && each != "zero") paths.push_back({"--input-data", each});
  if (w.check != load::kCheckData) paths.push_back({"--check", w.check});
  if (!oip::IsModelUrl(w.target)) paths.push_back({"MODEL", w.target});
  return paths;
}

Status CheckFlags(const LoadFlags& flags) {
  for (const std::string& name : flags.given) {
    if (!flags.validate.empty() && name != "--validate" && name != "--json")
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} says nothing here: --validate runs nothing", name));
  }
  TRY_STATUS(cluster::CheckJoin(flags.join));
  if (flags.join.any()) TRY_STATUS(load::CheckHosts(flags));
  return load::CheckOptions(flags);
}

}  // namespace weir::cli
