#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stop_token>

#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "data/source.h"
#include "infer/runner.h"
#include "model/model.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "run/answers.h"
#include "run/application.h"

namespace weir::cli {
namespace {

constexpr int kShownAnswers = 5;

struct Wanted {
  std::string model;
  std::vector<std::string> data;
  std::string recipe, payload = "tensor", engine, precision, mode = "async", answers, json, cache_dir;
  int threads = 0, streams = 0, batch = 0, in_flight = 0, decode_threads = 0, repeat_data = 1, top = 5;
  int64_t max_pixels = 100'000'000, max_file_bytes = 256 << 20;
  bool no_files = false, tolerate_damage = false, strict = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("run",
              "Runs a model over pictures: read, decode, prepare, infer, print; times every stage and names "
              "the wall.",
              "weir run made/resnet50 made/pictures --answers answers.csv");
  flags.Required("MODEL", w.model, "an .onnx file or a model folder");
  flags.Texts("DATA", w.data, "files, folders (recursive) or prepared sets", true);
  flags.Text("--recipe", w.recipe, "how pictures become the model's input; else the model's own recipe.yaml");
  flags.Choice("--payload", w.payload, {"tensor", "pixels", "image"},
               "what a served model is sent; in this process it is the tensor");
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
  flags.Text("--answers", w.answers, "the protocol of answers, a CSV file; - for standard output");
  flags.Switch("--tolerate-damage", w.tolerate_damage,
               "let damaged pictures through as far as they can be shown");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "a picture that declares more is rejected");
  flags.Integer64("--max-file-bytes", w.max_file_bytes, 1, int64_t{1} << 40, "a larger file is rejected");
  flags.Switch("--strict", w.strict, "exit with 1 when any picture was rejected");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

// Keeps the protocol of answers, and the first ones for the screen.
class Protocol final : public run::AnswerSink {
 public:
  Protocol(std::unique_ptr<run::AnswerWriter> writer, const std::vector<std::string>& labels)
      : writer_(std::move(writer)), labels_(labels) {}

  void Answered(const data::Input& input, const std::vector<run::Answer>& answers) override {
    if (writer_) writer_->Write(input.name, answers, labels_);
    if (!writer_ && std::ssize(shown_) < kShownAnswers && !answers.empty()) {
      const auto index = static_cast<size_t>(answers[0].class_index);
      shown_.push_back(fmt::format("{}  {} {}  {:.4g}", EscapeBytes(input.name), index,
                                   index < labels_.size() ? EscapeBytes(labels_[index]) : "",
                                   answers[0].score));
    }
  }
  void Rejected(const data::Input& input, const data::Reject& reject) override {
    if (writer_) writer_->WriteReject(input.name, reject);
  }
  Status Finish() { return writer_ ? writer_->Finish() : Status{}; }
  const std::vector<std::string>& shown() const { return shown_; }

 private:
  const std::unique_ptr<run::AnswerWriter> writer_;
  const std::vector<std::string>& labels_;
  std::vector<std::string> shown_;
};

// The model's input and output that the recipe means, checked against its geometry.
Result<run::Target> MakeTarget(const model::Model& model) {
  if (!model.recipe) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("model {} has no recipe.yaml: say with --recipe FILE how pictures become its input",
                    model.name));
  }
  run::Target target{
      .model = model.name, .recipe = *model.recipe, .labels = model.labels, .fixed_batch = model.fixed_batch};
  if (!target.recipe.geometry.OutputSize()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "the recipe gives pictures of different sizes: it needs a crop, or a resize to a width and height");
  }
  const auto pick = [&](const std::vector<infer::TensorInfo>& all, const std::string& name,
                        const char* what) -> Result<infer::TensorInfo> {
    if (name.empty() && all.size() == 1) return all.front();
    for (const infer::TensorInfo& info : all) {
      if (info.name == name) return info;
    }
    std::string names;
    for (const infer::TensorInfo& info : all) names += (names.empty() ? "" : ", ") + info.name;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("model {}: the recipe names {} \"{}\"; the model has {}", model.name, what, name, names));
  };
  target.input = TRY(pick(model.inputs, target.recipe.input, "input"));
  target.output = TRY(pick(model.outputs, target.recipe.output, "output")).name;
  if (model.inputs.size() != 1) {
    return Fail(ErrorCode::kUnsupported, fmt::format("model {} has {} inputs: pictures fill only one",
                                                     model.name, model.inputs.size()));
  }
  return target;
}

struct Outcome {
  run::Report report;
  run::Bounds bounds;
  std::optional<run::Wall> wall;
  monitor::Resources resources;
  double model_prepare_s = 0;
  bool invented_answers = false;  // an emulated engine's
};

// What makes the times of this run less than sure; each says what to do.
std::vector<std::string> Warnings(const Outcome& o) {
  std::vector<std::string> warnings;
  const monitor::Resources& r = o.resources;
  if (r.server_cpu && r.recogniser_cpu && r.app_cpu) {
    const double others = o.report.costs.foreign_cpu_s / std::max(o.report.costs.wall_s, 1e-9);
    if (r.wall_s > 0.3 && others > 0.05 * o.report.costs.cores) {
      warnings.push_back(
          fmt::format("other processes took {:.2f} of the machine's cores: throughput and times are theirs "
                      "too; trust the CPU time an image, or "
                      "run on a quiet machine",
                      others));
    }
  }
  if (r.steal_percent && *r.steal_percent > 1) {
    warnings.push_back(
        fmt::format("the hypervisor took {:.1f} % of the CPU time: repeat, and trust the CPU time an image",
                    *r.steal_percent));
  }
  if (r.throttled_s && *r.throttled_s > 0.01 * r.wall_s) {
    warnings.push_back(fmt::format(
        "the control group's CPU quota held the run back for {:.2f} s: raise it, or give fewer threads",
        *r.throttled_s));
  }
  if (o.invented_answers) {
    warnings.push_back(
        "the engine is emulated: its answers are made from the input's bytes and mean nothing");
  }
  if (o.report.batches > 0 && o.report.batches < 30) {
    warnings.push_back(
        fmt::format("{} batches are few for a rate: 30 or more (--repeat-data) steady it", o.report.batches));
  }
  return warnings;
}

Json StagesJson(const Outcome& o) {
  const run::StageTimes& s = o.report.stages;
  Json stages;
  stages["model_prepare"] = 1e3 * o.model_prepare_s;
  stages["warm_up"] = 1e3 * o.report.warm_up_s;
  stages["load_prepare"] = Milliseconds(s.load_prepare);
  stages["wait"] = Milliseconds(s.wait);
  stages["send"] = Milliseconds(s.send);
  stages["infer"] = Milliseconds(s.infer);
  stages["result_load"] = Milliseconds(s.result_load);
  stages["print"] = Milliseconds(s.print);
  stages["total"] = Milliseconds(s.total);
  return stages;
}

Json ResultJson(const Wanted& w, const run::Options& options, const model::Model& model,
                const model::OpenedSession& opened, const data::Listing& listing, const Outcome& o,
                const record::Provenance& provenance) {
  const run::Report& r = o.report;
  Json json;
  json["model"] = EscapeBytes(model.name);
  json["engine"] = opened.engine->name();
  json["engine_version"] = opened.engine->version();
  json["precision"] = opened.session->precision();
  json["threads"] = opened.session->threads();
  json["streams"] = opened.session->streams();
  json["batch"] = options.batch;
  if (!model.not_batchable.empty()) json["not_batchable"] = model.not_batchable;
  json["mode"] = w.mode;
  json["in_flight"] = r.costs.in_flight;
  json["decode_threads"] = options.decode_threads;
  json["no_files"] = options.no_files;
  json["repeat_data"] = options.repeat_data;
  json["images"] = r.images;
  json["rejected"] = r.rejected.total;
  json["rejected_by_reason"] = Json(r.rejected.by_reason);
  if (r.rejected.by_reason.empty()) json["rejected_by_reason"] = Json::object();
  json["skipped"] = listing.skipped.size();
  json["interrupted"] = r.stopped;
  PutIfAny(json, "throughput_images_per_s", r.Throughput());
  json["wall_s"] = r.wall_s;
  if (r.load_before_s > 0) json["load_before_s"] = r.load_before_s;
  json["stages_ms"] = StagesJson(o);
  json["resources"] = o.resources.ToJson();
  Json bounds = Json::object();
  PutIfAny(bounds, "read", o.bounds.read);
  PutIfAny(bounds, "decode", o.bounds.decode);
  PutIfAny(bounds, "infer", o.bounds.infer);
  PutIfAny(bounds, "in_flight", o.bounds.in_flight);
  PutIfAny(bounds, "print", o.bounds.print);
  PutIfAny(bounds, "cpu", o.bounds.cpu);
  if (o.bounds.pipeline > 0) bounds["pipeline"] = o.bounds.pipeline;
  json["bound_images_per_s"] = bounds;
  if (r.images > 0) {
    const run::Costs& c = r.costs;
    json["cpu_ms_per_image"] = {{"load_prepare", 1e3 * c.load_cpu_s / c.images},
                                {"infer", 1e3 * c.engine_cpu_s / c.images},
                                {"other", 1e3 * c.other_cpu_s / c.images}};
  }
  if (o.wall) {
    json["wall"] = {{"stage", o.wall->stage},
                    {"share", o.wall->share},
                    {"share_of", o.wall->share_of},
                    {"gain_at_most", o.wall->gain},
                    {"text", o.wall->text}};
  }
  if (r.labelled > 0 && !o.invented_answers) {
    json["accuracy"] = {{"top1", static_cast<double>(r.top1_hits) / static_cast<double>(r.labelled)},
                        {"top5", static_cast<double>(r.top5_hits) / static_cast<double>(r.labelled)},
                        {"images", r.labelled}};
  }
  json["warnings"] = Warnings(o);
  json["provenance"] = provenance.ToJson();
  json["command"] = record::CommandLine(CommandLine());
  return json;
}

std::string RangeText(const std::optional<monitor::Range>& range, const char* unit, double scale) {
  if (!range) return "-";
  return fmt::format("{} {}  ({} to {})", Short(range->mean * scale), unit, Short(range->min * scale),
                     Short(range->max * scale));
}

std::string StageLines(const Console& console, const Outcome& o) {
  const run::StageTimes& s = o.report.stages;
  const double pictures = std::max<double>(1, static_cast<double>(s.pictures));
  const double total = std::max(1e-9, Milliseconds(s.total));
  std::string text = console.Bold("\nstages") +
                     "     ms a picture, waiting included; a batch's time counts for each of its pictures\n";
  const std::array<std::pair<const char*, Duration>, 6> rows{{{"load, prepare", s.load_prepare},
                                                              {"wait", s.wait},
                                                              {"send", s.send},
                                                              {"infer", s.infer},
                                                              {"load result", s.result_load},
                                                              {"print", s.print}}};
  for (const auto& [name, time] : rows) {
    text += fmt::format("  {:<14}{:>9.3f}  {}{:>4.0f} %\n", name, Milliseconds(time) / pictures,
                        Console::Bar(Milliseconds(time) / total, 30), 100 * Milliseconds(time) / total);
  }
  return text + fmt::format("  {:<14}{:>9.3f}\n", "total", Milliseconds(s.total) / pictures);
}

std::string ResourceLines(const Console& console, const Outcome& o) {
  const monitor::Resources& r = o.resources;
  std::string text =
      console.Bold("\nresources") +
      fmt::format("  mean (min to max) over {} samples of {:.0f} ms\n", r.samples, r.period_ms);
  if (o.report.images > 0) {
    const run::Costs& c = o.report.costs;
    text += fmt::format("  CPU, an image      {} ms: load {}, infer {}, other {}\n",
                        Short(1e3 * (c.load_cpu_s + c.engine_cpu_s + c.other_cpu_s) / c.images),
                        Short(1e3 * c.load_cpu_s / c.images), Short(1e3 * c.engine_cpu_s / c.images),
                        Short(1e3 * c.other_cpu_s / c.images));
  }
  text += fmt::format("  CPU, engine        {}\n", RangeText(r.recogniser_cpu, "cores", 1));
  text += fmt::format("  CPU, application   {}\n", RangeText(r.app_cpu, "cores", 1));
  text += fmt::format("  CPU, machine       {}\n", RangeText(r.server_cpu, "cores", 1));
  if (r.gpu_percent)
    text += fmt::format("  GPU ({})     {}\n", r.gpu_label, RangeText(r.gpu_percent, "%", 1));
  text += fmt::format("  memory, resident   {}\n", RangeText(r.process_memory_bytes, "MB", 1e-6));
  return text;
}

std::string ResultText(const Console& console, const Wanted& w, const run::Options& options,
                       const model::Model& model, const model::OpenedSession& opened,
                       const data::Listing& listing, const Outcome& o, const Protocol& protocol) {
  const run::Report& r = o.report;
  std::string text;
  if (o.invented_answers && !protocol.shown().empty())
    text += "(emulated: these answers are made from bytes and mean nothing)\n";
  for (const std::string& line : protocol.shown()) text += line + "\n";
  if (!protocol.shown().empty()) {
    if (r.images > kShownAnswers)
      text += fmt::format("... and {} more; --answers FILE.csv keeps them all\n",
                          Count(r.images - kShownAnswers));
    text += "\n";
  }
  const std::string version = opened.engine->version();  // the build behind the first dash is for the JSON
  text +=
      fmt::format("{}  {} {}, {}, {} in {}, batch {}{}, {}", console.Bold(EscapeBytes(model.name)),
                  opened.engine->name(), version.substr(0, version.find('-')), opened.session->precision(),
                  Count(opened.session->threads(), "thread"), Count(opened.session->streams(), "stream"),
                  options.batch, model.fixed_batch ? " (fixed by the model)" : "", w.mode);
  if (options.mode == run::Mode::kAsync) text += fmt::format(" with {} in flight", options.in_flight);
  if (!options.no_files) text += ", " + Count(options.decode_threads, "decode thread");
  text += fmt::format("\n{} answered, {} rejected, {} skipped{}\n", Count(r.images, "picture"),
                      Count(r.rejected.total), Count(std::ssize(listing.skipped), "file"),
                      r.stopped ? "; broken off" : "");
  for (const auto& [name, reject] : r.rejected.first) {
    text += fmt::format("  rejected {}: {}{}{}\n", EscapeBytes(name), data::ToString(reject.reason),
                        reject.detail.empty() ? "" : ": ", EscapeBytes(reject.detail));
  }
  if (r.rejected.total > std::ssize(r.rejected.first)) text += "  ...\n";
  if (r.labelled > 0 && !o.invented_answers) {
    text += fmt::format("{}   top-1 {:.1f} %, top-5 {:.1f} %\n", console.Bold("accuracy"),
                        100.0 * static_cast<double>(r.top1_hits) / static_cast<double>(r.labelled),
                        100.0 * static_cast<double>(r.top5_hits) / static_cast<double>(r.labelled));
  }
  if (const auto throughput = r.Throughput()) {
    text += fmt::format(
        "{} {} images/s in {:.2f} s; before that the model took {:.2f} s, the warm-up batch {:.2f} s{}\n",
        console.Bold("throughput"), Short(*throughput), r.wall_s, o.model_prepare_s, r.warm_up_s,
        r.load_before_s > 0 ? fmt::format(", loading {:.2f} s", r.load_before_s) : "");
    text += StageLines(console, o);
    text += ResourceLines(console, o);
    std::string parts;
    const auto part = [&](const char* name, const std::optional<double>& bound) {
      if (bound) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, Short(*bound));
    };
    part("read", o.bounds.read);
    part("decode", o.bounds.decode);
    part("infer", o.bounds.infer);
    part("all on these cores", o.bounds.cpu);
    text += fmt::format("\n{}     images/s each part alone could do: {}; together at most {}\n",
                        console.Bold("bounds"), parts, Short(o.bounds.pipeline));
  }
  if (o.wall) text += fmt::format("{}       {}\n", console.Bold("wall"), o.wall->text);
  for (const std::string& warning : Warnings(o))
    text += fmt::format("{}    {}\n", console.Bold("warning"), warning);
  text += fmt::format("repeat     {}\n", record::CommandLine(CommandLine()));
  return text;
}

int BatchOf(const Wanted& w, const model::Model& model) {
  if (model.fixed_batch) return *model.fixed_batch;
  return w.batch > 0 ? w.batch : std::min(8, std::max(1, model.max_batch.value_or(8)));
}

run::Options MakeOptions(const Wanted& w, const model::Model& model, const infer::Session& session) {
  run::Options options;
  const bool sync = w.mode == "sync";
  options.mode = sync ? run::Mode::kSync : run::Mode::kAsync;
  options.batch = BatchOf(w, model);
  options.in_flight = w.in_flight > 0 ? w.in_flight : session.callers() + 1;
  options.decode_threads = w.decode_threads > 0 ? w.decode_threads : (sync ? 1 : UsableCpus());
  options.no_files = w.no_files;
  options.repeat_data = w.repeat_data;
  options.top = w.top;
  options.loading.decode.max_pixels = w.max_pixels;
  options.loading.decode.tolerate_damage = w.tolerate_damage;
  options.loading.max_file_bytes = static_cast<uint64_t>(w.max_file_bytes);
  return options;
}

// An accelerator tells its own load; CPU engines are told by their threads.
monitor::ResourceMonitor::Options WatchOptions(const infer::Session& session) {
  monitor::ResourceMonitor::Options options;
  if (!session.Stats()) return options;
  options.device_label = "emulated";
  options.device_busy = [&session] {
    Duration sum{};
    const infer::EngineStats stats = *session.Stats();
    for (const Duration busy : stats.busy) sum += busy;
    return stats.busy.empty() ? sum : sum / static_cast<int64_t>(stats.busy.size());
  };
  return options;
}

// The user's word, else the model's configuration, else what the mode makes sense of: several batches side by
// side keep all cores busy without waiting for one another, and one batch at a time is soonest done by all
// threads together.
infer::SessionOptions SessionOptions(const Wanted& w, const model::Model& model) {
  infer::SessionOptions options = model::SessionDefaults(model);
  if (!w.precision.empty()) options.precision = w.precision;
  if (w.threads > 0) options.threads = w.threads;
  if (w.streams > 0) {
    options.streams = w.streams;
  } else if (!model.parameters.contains("streams")) {
    options.streams = w.mode == "sync" ? 1 : 0;
  }
  options.cache_dir = w.cache_dir;
  options.batch = BatchOf(w, model);
  return options;
}

Result<int> RunModel(const Wanted& w, const std::stop_token& stop) {
  if (w.payload != "tensor") {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--payload {} is for served models: in this process the model is given its tensor",
                    w.payload));
  }
  Console console(w.json, w.answers == "-" ? Console::Stdout::kTaken : Console::Stdout::kFree);
  TRY_STATUS(console.CheckJson());
  if (!w.answers.empty() && w.answers == w.json) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--answers and --json both name {}: give each a file of its own", w.answers));
  }
  if (w.mode == "sync" && w.in_flight > 1)
    console.Note("--in-flight says nothing in sync mode: one batch at a time");
  const SteadyClock clock;
  const model::Model model = TRY(model::OpenModel(w.model, {.recipe = w.recipe}));
  run::Target target = TRY(MakeTarget(model));
  if (w.batch > 0 && model.fixed_batch && w.batch != *model.fixed_batch) {
    console.Note(fmt::format("model {} has a fixed batch of {}: it runs at that, not at {}", model.name,
                             *model.fixed_batch, w.batch));
  }
  if (model.max_batch && !model.fixed_batch && w.batch > *model.max_batch) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--batch {} is over the max_batch_size of {} in the configuration of {}", w.batch,
                            *model.max_batch, model.name));
  }
  const data::Listing listing = TRY(data::ListInputs(w.data));
  if (listing.inputs.empty()) {
    return Fail(ErrorCode::kNotFound, fmt::format("no pictures in {} ({} files skipped)",
                                                  record::CommandLine(w.data), listing.skipped.size()));
  }
  TRY_STATUS(run::CheckGeometry(listing, target.recipe.geometry));

  Outcome o;
  const Instant before = clock.Now();
  const model::OpenedSession opened =
      TRY(model::OpenSession(model, w.engine, SessionOptions(w, model), clock));
  o.model_prepare_s = Seconds(clock.Now() - before);
  o.invented_answers = opened.session->Stats().has_value();
  const infer::Shape& compiled = opened.session->inputs().front().shape;
  if (!compiled.empty() && compiled.front() > 0) target.fixed_batch = static_cast<int>(compiled.front());
  const run::Options options = MakeOptions(w, model, *opened.session);
  const auto runner = TRY(infer::Runner::Create(opened.session, clock, {.max_queue = options.in_flight + 1}));

  std::unique_ptr<run::AnswerWriter> writer;
  if (!w.answers.empty())
    writer = TRY(run::AnswerWriter::Create(w.answers == "-" ? "/dev/stdout" : w.answers));
  Protocol protocol(std::move(writer), target.labels);
  run::Application application(*runner, target, listing, clock, options);
  {
    const std::stop_callback on_stop(stop, [&] { application.Stop(); });
    TRY_STATUS(application.MakeReady());
    const auto resources = TRY(monitor::ResourceMonitor::Start(clock, WatchOptions(*opened.session)));
    const Duration cpu_before = ProcessCpuTime();
    o.report = application.Run(protocol, [&](const run::Progress& p) {
      console.Progress(p.elapsed_s, "run", p.done, p.total,
                       p.rejected > 0 ? fmt::format(", {} rejected", p.rejected) : "");
    });
    const double cpu_s = Seconds(ProcessCpuTime() - cpu_before);
    console.EndProgress();
    o.resources = resources->Stop();
    run::Costs& costs = o.report.costs;
    costs.engine_threads = opened.session->threads();
    costs.engine_streams = opened.session->streams();
    if (o.resources.recogniser_cpu)
      costs.engine_cpu_s = o.resources.recogniser_cpu->mean * o.resources.wall_s;
    if (o.resources.server_cpu) {
      const double seconds = o.resources.server_cpu->mean * o.resources.wall_s - cpu_s;
      costs.foreign_cpu_s = std::clamp(seconds, 0.0, std::max(0.0, costs.cores * o.resources.wall_s - cpu_s));
    }
    costs.other_cpu_s = std::max(0.0, cpu_s - costs.load_cpu_s - costs.engine_cpu_s);
  }
  TRY_STATUS(protocol.Finish());
  o.bounds = run::FindBounds(o.report.costs);
  o.wall = run::FindWall(o.report.costs);

  const record::Provenance provenance = record::CollectProvenance(
      {.command = CommandLine(), .libraries = {{opened.engine->name(), opened.engine->version()}}});
  console.Text(ResultText(console, w, options, model, opened, listing, o, protocol));
  TRY_STATUS(console.Json(ResultJson(w, options, model, opened, listing, o, provenance)));
  if (o.report.stopped) return kInterrupted;
  if (o.report.failed > 0 || (w.strict && o.report.rejected.total > 0)) return kJobFailed;
  return kDone;
}

}  // namespace

int Run(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Interrupt interrupt;
  const Result<int> status = RunModel(wanted, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
