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
#include "run/run_summary.h"

namespace weir::cli {
namespace {

constexpr int kShownAnswers = 5;

std::optional<int> ParseFlags(const Arguments& arguments, RunFlags& w) {
  Flags flags("run",
              "Runs a model over pictures: read, decode, prepare, infer, print; times every stage and names "
              "the bottleneck.",
              "weir run made/resnet50 made/pictures --answers answers.csv");
  flags.Required(
      "MODEL", w.model,
      "an .onnx file, a model folder, or http://HOST:PORT/NAME or grpc://HOST:PORT/NAME of a server");
  flags.Texts("DATA", w.data, "files, folders (recursive) or prepared sets", true);
  flags.Text("--recipe", w.recipe, "how pictures become the model's input; else the model's own recipe.yaml");
  flags.Choice(
      "--payload", w.payload, {"tensor", "pixels", "image"},
      "what a server is sent: the input; uint8 pixels at the model's size, which it normalises; or the "
      "files, which it decodes");
  flags.Text("--engine", w.engine,
             "onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms; else what the model says");
  flags.Text("--precision", w.precision, "arithmetic where the model says float: f32 (default), bf16, f16");
  flags.Integer("--threads", w.threads, 0, 4096,
                "CPU threads of the engine in all; 0: all that this process may use");
  flags.Integer("--streams", w.streams, 0, 4096,
                "batches that compute side by side on those threads; 0: one a thread in async, 1 in sync");
  flags.Text("--cache-dir", w.cache_dir, "where an engine that can keeps compiled models");
  flags.Integer("-b,--batch", w.batch, 0, 65536, "pictures a batch; 0: 8, or what the model is fixed to");
  flags.Choice("--mode", w.mode, {"sync", "async"}, "sync: one batch at a time, nothing overlaps");
  flags.Integer("--in-flight", w.in_flight, 0, 4096,
                "batches submitted and unanswered (async); 0: what keeps the engine busy");
  flags.Integer("--decode-threads", w.decode_threads, 0, 4096,
                "threads that read and decode; 0: one a core in async, 1 in sync");
  flags.Switch("--no-files", w.no_files, "load all data into memory before the clock starts");
  flags.Integer("--repeat-data", w.repeat_data, 1, 1'000'000, "passes over the data");
  flags.Integer("--top", w.top, 1, 1000, "classes in each answer");
  flags.Text("--answers", w.answers, "the predictions file, a CSV file; - for standard output");
  flags.Switch("--tolerate-damage", w.tolerate_damage,
               "let damaged pictures through as far as they can be shown");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "a picture that declares more is rejected");
  flags.Integer64("--max-file-bytes", w.max_file_bytes, 1, int64_t{1} << 40, "a larger file is rejected");
  AddServerPlace(flags, w.server);
  flags.Switch("--strict", w.strict, "exit with 1 when any picture was rejected");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

// Keeps the predictions file, and the first ones for the screen.
class Protocol final : public run::AnswerSink {
 public:
  Protocol(std::unique_ptr<run::AnswerWriter> writer, const std::vector<std::string>& labels)
      : writer_(std::move(writer)), labels_(labels) {}

  void Answered(const dataset::Input& input, const std::vector<run::Answer>& answers) override {
    if (writer_) writer_->Write(input.name, answers, labels_);
    if (!writer_ && std::ssize(shown_) < kShownAnswers && !answers.empty()) {
      const auto index = static_cast<size_t>(answers[0].class_index);
      shown_.push_back(fmt::format("{}  {} {}  {:.4g}", EscapeBytes(input.name), index,
                                   index < labels_.size() ? EscapeBytes(labels_[index]) : "",
                                   answers[0].score));
    }
  }
  void Rejected(const dataset::Input& input, const image::Reject& reject) override {
    if (writer_) writer_->WriteReject(input.name, reject);
  }
  Status Finish() { return writer_ ? writer_->Finish() : Status{}; }
  const std::vector<std::string>& shown() const { return shown_; }

 private:
  const std::unique_ptr<run::AnswerWriter> writer_;
  const std::vector<std::string>& labels_;
  std::vector<std::string> shown_;
};

run::Options MakeOptions(const RunFlags& w, const run::Backend& recogniser) {
  run::Options options;
  options.mode = w.sync() ? run::Mode::kSync : run::Mode::kAsync;
  options.batch = recogniser.batch();
  options.in_flight = recogniser.in_flight();
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
Status Measure(run::Application& application, Protocol& protocol, Console& console, const Clock& clock,
               run::Backend& recogniser, const monitor::ServerPlace& place, run::RunSummary& result) {
  TRY_STATUS(application.MakeReady());
  recogniser.Begin();
  const auto resources = TRY(monitor::ResourceMonitor::Start(clock, recogniser.WatchOptions()));
  std::optional<monitor::ServerWatch> server;
  if (place.any()) server = TRY(monitor::ServerWatch::Start(place, MakeServerAccess(clock), clock));
  const Duration cpu_before = ProcessCpuTime();
  result.report = application.Run(protocol, [&](const run::Progress& p) {
    console.Progress(p.elapsed_s, "run", p.done, p.total,
                     p.rejected > 0 ? fmt::format(", {} rejected", p.rejected) : "");
  });
  const double cpu_s = Seconds(ProcessCpuTime() - cpu_before);
  console.EndProgress();
  result.resources = resources->Stop();
  if (server) result.server_resources = server->Stop();
  recogniser.End();
  run::AddCosts(recogniser, cpu_s, result.resources, result.report.costs);
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
    console.Note("--in-flight says nothing in sync mode: one batch at a time");
  const SteadyClock clock;
  monitor::ServerPlace server = w.server;
  TRY_STATUS(monitor::FindServer(server, MakeServerAccess(clock)));
  const std::unique_ptr<run::Backend> recogniser = TRY(run::OpenBackend(w, clock));
  const run::Target& target = recogniser->target();
  if (w.batch > 0 && target.fixed_batch && w.batch != *target.fixed_batch) {
    console.Note(fmt::format("model {} has a fixed batch of {}: it runs at that, not at {}",
                             recogniser->name(), *target.fixed_batch, w.batch));
  }
  const dataset::Listing listing = TRY(dataset::ListInputs(w.data));
  if (listing.inputs.empty()) {
    return Fail(ErrorCode::kNotFound, fmt::format("no pictures in {} ({} files skipped)",
                                                  record::CommandLine(w.data), listing.skipped.size()));
  }
  TRY_STATUS(run::CheckListing(listing, target));

  TRY_STATUS(recogniser->Load());
  const run::Options options = MakeOptions(w, *recogniser);
  std::unique_ptr<run::AnswerWriter> writer;
  if (!w.answers.empty())
    writer = TRY(run::AnswerWriter::Create(w.answers == "-" ? "/dev/stdout" : w.answers));
  Protocol protocol(std::move(writer), target.labels);
  run::RunSummary result{.mode = w.mode, .options = options, .backend = *recogniser, .listing = listing};
  result.labels = run::CheckLabels(listing, target);
  run::Application application(recogniser->service(), target, listing, clock, options);
  {
    const std::stop_callback on_stop(stop, [&] { application.Stop(); });
    TRY_STATUS(Measure(application, protocol, console, clock, *recogniser, server, result));
  }
  TRY_STATUS(protocol.Finish());
  result.shown = protocol.shown();
  result.command = record::CommandLine(CommandLine());
  result.bounds = results::FindBounds(result.report.costs);
  result.bottleneck = results::FindBottleneck(result.report.costs);

  const record::Provenance provenance =
      record::CollectProvenance({.command = CommandLine(), .libraries = recogniser->Libraries()});
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
