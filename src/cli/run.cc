#include <fmt/format.h>

#include <algorithm>
#include <stop_token>

#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/run_flags.h"
#include "cli/server_place.h"
#include "cli/verbs.h"
#include "dataset/source.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "run/answers.h"
#include "run/application.h"
#include "run/backend.h"
#include "run/label_check.h"
#include "run/predictions.h"
#include "run/run_summary.h"

namespace weir::cli {
namespace {

std::optional<int> ParseFlags(const Arguments& arguments, RunFlags& w) {
  Flags flags("run",
              "Runs a model over pictures: reads, decodes, prepares, infers, prints. Times every stage and "
              "names the bottleneck.",
              "weir run made/resnet50 made/pictures --answers answers.csv");
  flags.Required("MODEL", w.model,
                 ".onnx file, model folder, or http://HOST:PORT/NAME or grpc://HOST:PORT/NAME of a server; "
                 "HOST:PORT,HOST:PORT for several servers");
  flags.Choice("--balance", w.balance, {"round-robin", "least-in-flight", "grpc-round-robin"},
               "policy over several servers; grpc-round-robin is the gRPC library's own");
  flags.Texts("DATA", w.data, "files, folders (recursive) or prepared sets", true);
  flags.Text("--recipe", w.recipe,
             "recipe that makes the model's input of a picture (default: the model's recipe.yaml)");
  flags.Choice("--payload", w.payload, {"tensor", "pixels", "image"},
               "form in which pictures are sent to a server: its input, uint8 pixels that it normalises, or "
               "files that it decodes");
  flags.Text(
      "--engine", w.engine,
      "engine: onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms (default: as the model says)");
  flags.Text(
      "--device", w.device,
      "device: cpu (default), cuda:N, cuda:UUID, cuda:all, gpu:N or npu (Intel, with openvino); several "
      "with commas");
  flags.Choice("--preprocess", w.preprocess, run::PreprocessPlaces(),
               "place where pixels are normalised: cpu (default), or gpu (CUDA: a quarter of the bytes)");
  flags.Switch("--cuda-graph", w.cuda_graph, "record each batch size once and launch it whole (CUDA)");
  flags.Integer64("--gpu-memory-mb", w.gpu_memory_mb, 0, 1 << 24,
                  "most MiB that an instance on CUDA takes (0: no limit)");
  flags.Text("--precision", w.precision,
             "arithmetic of the model's floats: f32 (default), bf16, f16, and tf32 on CUDA");
  flags.Integer("--threads", w.threads, 0, 4096,
                "CPU threads of the engine in all (0: all that this process may use)");
  flags.Integer("--streams", w.streams, 0, 4096,
                "batches that compute at the same time on those threads (0: one for each thread in async "
                "mode, 1 in sync mode)");
  flags.Text("--cache-dir", w.cache_dir, "folder for compiled models, if the engine keeps them");
  flags.Integer("-b,--batch", w.batch, 0, 65536, "pictures in a batch (0: 8, or the model's fixed batch)");
  flags.Choice("--mode", w.mode, {"sync", "async"}, "sync: one batch at a time, without overlap");
  flags.Integer("--in-flight", w.in_flight, 0, 4096,
                "batches in flight in async mode (0: enough to keep the engine busy)");
  flags.Integer("--decode-threads", w.decode_threads, 0, 4096,
                "threads that read and decode (0: one for each core in async mode, 1 in sync mode)");
  flags.Switch("--no-files", w.no_files, "load all data into memory before the clock starts");
  flags.Integer("--repeat-data", w.repeat_data, 1, 1'000'000, "passes over the data");
  flags.Integer("--top", w.top, 1, 1000, "number of classes in each answer");
  flags.Text("--answers", w.answers, "predictions file (CSV); - for standard output");
  flags.Switch("--tolerate-damage", w.tolerate_damage,
               "accept damaged pictures as far as they can be decoded");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "largest picture that is accepted, in pixels");
  flags.Integer64("--max-file-bytes", w.max_file_bytes, 1, int64_t{1} << 40,
                  "largest file that is accepted, in bytes");
  AddServerPlace(flags, w.server);
  flags.Switch("--strict", w.strict, "exit with status 1 if any picture was rejected");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

run::Options MakeOptions(const RunFlags& w, const run::Backend& backend) {
  run::Options options;
  options.mode = w.sync() ? run::Mode::kSync : run::Mode::kAsync;
  options.batch = backend.batch();
  options.in_flight = backend.in_flight();
  options.decode_threads = w.decode_threads > 0 ? w.decode_threads : (w.sync() ? 1 : UsableCpus());
  options.no_files = w.no_files;
  options.repeat_data = w.repeat_data;
  options.top = w.top;
  options.loading.decode.max_pixels = w.max_pixels;
  options.loading.decode.tolerate_damage = w.tolerate_damage;
  options.loading.max_file_bytes = static_cast<uint64_t>(w.max_file_bytes);
  return options;
}

// The measured part: from the first picture to the last answer.
Status Measure(run::Application& application, run::Predictions& predictions, Console& console,
               const Clock& clock, run::Backend& backend, const monitor::ServerPlace& place,
               run::RunSummary& result) {
  TRY_STATUS(application.MakeReady());
  backend.Begin();
  const auto resources = TRY(monitor::ResourceMonitor::Start(clock, backend.WatchOptions()));
  std::optional<monitor::ServerWatch> server;
  if (place.any()) server = TRY(monitor::ServerWatch::Start(place, MakeServerAccess(clock), clock));
  const Duration cpu_before = ProcessCpuTime();
  result.report = application.Run(predictions, [&](const run::Progress& p) {
    console.Progress(p.elapsed_s, "run", p.done, p.total,
                     p.rejected > 0 ? fmt::format(", {} rejected", p.rejected) : "");
  });
  const double cpu_s = Seconds(ProcessCpuTime() - cpu_before);
  console.EndProgress();
  result.resources = resources->Stop();
  if (server) result.server_resources = server->Stop();
  backend.End();
  run::AddCosts(backend, cpu_s, result.resources, result.report.costs);
  return {};
}

Result<int> RunModel(const RunFlags& w, const std::stop_token& stop) {
  Console console(w.json, w.answers == "-" ? Console::Stdout::kTaken : Console::Stdout::kFree);
  TRY_STATUS(console.CheckJson());
  if (w.answers != "-") TRY_STATUS(CheckOutput("--answers", w.answers));
  if (!w.answers.empty() && w.answers == w.json) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--answers and --json both name {}: give each a file of its own", w.answers));
  }
  if (w.mode == "sync" && w.in_flight > 1)
    console.Note("--in-flight has no effect in sync mode: one batch is sent at a time");
  const SteadyClock clock;
  monitor::ServerPlace server = w.server;
  TRY_STATUS(monitor::FindServer(server, MakeServerAccess(clock)));
  const std::unique_ptr<run::Backend> backend = TRY(run::OpenBackend(w, clock));
  const run::Target& target = backend->target();
  if (w.batch > 0 && target.fixed_batch && w.batch != *target.fixed_batch) {
    console.Note(fmt::format("model {} has a fixed batch of {}: it runs at that, not at {}", backend->name(),
                             *target.fixed_batch, w.batch));
  }
  const dataset::Listing listing = TRY(dataset::ListInputs(w.data));
  if (listing.inputs.empty()) {
    return Fail(ErrorCode::kNotFound, fmt::format("no pictures in {} ({} files skipped)",
                                                  record::CommandLine(w.data), listing.skipped.size()));
  }
  TRY_STATUS(run::CheckListing(listing, target));

  TRY_STATUS(backend->Load());
  const run::Options options = MakeOptions(w, *backend);
  std::unique_ptr<run::AnswerWriter> writer;
  if (!w.answers.empty())
    writer = TRY(run::AnswerWriter::Create(w.answers == "-" ? "/dev/stdout" : w.answers));
  run::Predictions predictions(std::move(writer), target.labels);
  run::RunSummary result{.mode = w.mode, .options = options, .backend = *backend, .listing = listing};
  result.labels = run::CheckLabels(listing, target);
  run::Application application(backend->service(), target, listing, clock, options);
  {
    const std::stop_callback on_stop(stop, [&] { application.Stop(); });
    TRY_STATUS(Measure(application, predictions, console, clock, *backend, server, result));
  }
  TRY_STATUS(predictions.Finish());
  result.shown = predictions.shown();
  result.command = record::CommandLine(CommandLine());
  result.bounds = results::FindBounds(result.report.costs);
  result.bottleneck = results::FindBottleneck(result.report.costs);

  const record::Provenance provenance =
      record::CollectProvenance({.command = CommandLine(), .libraries = backend->Libraries()});
  console.Text(SummaryText(console.style(), result));
  TRY_STATUS(console.Json(TRY(MakeResult(result, provenance)).ToJson()));
  if (!result.report.store_failure.empty())
    return Fail(ErrorCode::kIo,
                fmt::format("{}; the run ended after {}. Run the same command again once the "
                            "store gives the object",
                            result.report.store_failure, Count(result.report.images, "answer")));
  if (result.report.stopped) return kInterrupted;
  if (result.report.failed > 0 || (w.strict && result.report.rejected.total > 0)) return kJobFailed;
  return kDone;
}

}  // namespace

int Run(const Arguments& arguments) {
  RunFlags wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Interrupt interrupt;
  const Result<int> status = RunModel(wanted, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
