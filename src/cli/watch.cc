#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/server_place.h"
#include "cli/verbs.h"
#include "record/provenance.h"
#include "watch/find_max.h"
#include "watch/identity_lookup.h"
#include "watch/line_writer.h"
#include "watch/live_server.h"
#include "watch/session.h"
#include "watch/webhook.h"

namespace weir::cli {
namespace {

using results::WatchResult;

constexpr Duration kWebhookPatience = 5s;  // for what still waits at the end

struct Wanted {
  std::vector<std::string> streams;
  std::string detect, embed, classify, detect_recipe, recipe, engine, deadline = "100ms", duration,
                                                                      trial = "10s", policy = "latest";
  std::string stall = "5s", connect = "5s", frames, events, json, live, webhook, webhook_events = "any";
  std::string precision;
  monitor::ServerPlace server;
  int threads = 0, engine_streams = 0, batch = 0, workers = 0, embed_every = 10, detect_class = -1,
      most_streams = 256;
  double detect_score = 0.6, least_in_time = 0;
  watch::IdentityOptions identities{.embedding_model = {}};
  std::string storage_delay;
  int64_t max_pixels = int64_t{8192} * 8192;
  bool find_max = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags(
      "watch",
      "Follows live streams under a deadline: decodes, detects, tracks, classifies or embeds, and accounts "
      "for "
      "every frame from its capture on.",
      "weir watch made:fps=10 --classify made/tiny --deadline 100ms --duration 10s --json result.json");
  flags.Texts("STREAM", w.streams,
              "made:KEY=VALUE,..., http://HOST/PATH (MJPEG), rtsp://HOST/PATH, or a video file", true);
  flags.Text("--detect", w.detect,
             "Detection model: YuNet, FastestDet or an SSD. Without it the whole frame is one object.");
  flags.Text("--embed", w.embed, "Embedding model, a file, a folder or a server's URL.");
  flags.Text("--classify", w.classify, "Classification model, instead of --embed.");
  flags.Text("--recipe", w.recipe, "Recipe of the embedding or classification model, instead of its own.");
  flags.Text("--detect-recipe", w.detect_recipe, "Recipe of the detection model, instead of its own.");
  flags.Number("--detect-score", w.detect_score, 0, 1, "Least score of a detection.");
  flags.Integer("--detect-class", w.detect_class, -1, 1'000'000, "Only detections of this class; -1: any.");
  flags.Integer("--embed-every", w.embed_every, 1, 1'000'000, "Frames between two embeddings of one track.");
  flags.Text(
      "--identities", w.identities.folder,
      "Index of weir identities in which embeddings are looked up. It must have the embedding model's hash.");
  flags.Choice(
      "--identity-access", w.identities.access, {"map", "direct", "memory"},
      "How rows of the index are read: from a mapping, by direct reads all at once, or from memory.");
  flags.Number("--false-alarms", w.identities.false_alarms, 1e-9, 0.5,
               "Share of strangers that may be given a name; the threshold follows from it and from the "
               "number enrolled.");
  flags.Number("--threshold", w.identities.threshold, -1, 1,
               "Least cosine of a name, instead of --false-alarms; -1: not given.");
  flags.Text(
      "--storage-delay", w.storage_delay,
      "Time added to each look-up, as +180us: what a slower storage would do to its one round of reads.");
  flags.Text("--deadline", w.deadline, "Time from a frame's capture to its answer.");
  flags.Text("--duration", w.duration, "Time to follow the streams; without it until they end or Ctrl-C.");
  flags.Choice("--drop", w.policy, {"latest", "non-reference", "to-key-frame", "none"},
               "Frames to leave out when a stream is behind: all but the newest; frames that no other needs; "
               "all up to the "
               "next key frame; none before their deadline.");
  flags.Text("--engine", w.engine, "onnxruntime, openvino or emulated:..., instead of the models' own.");
  flags.Integer("--threads", w.threads, 0, 4096, "CPU threads of each model's engine (0: its own choice).");
  flags.Integer("--engine-streams", w.engine_streams, 0, 4096,
                "Batches that compute side by side (0: the engine's own choice).");
  flags.Text("--precision", w.precision, "Arithmetic where the model says float: f32 (default), bf16, f16.");
  flags.Integer("-b,--batch", w.batch, 0, 65536,
                "Frames a batch at most (0: 1 on a CPU, 8 on an accelerator).");
  flags.Integer("--workers", w.workers, 0, 1024, "Threads that decode and scale (0: one a CPU).");
  flags.Text("--connect-timeout", w.connect, "Time for a connection to a stream.");
  flags.Text("--stall-timeout", w.stall, "Time without a frame after which a stream is connected again.");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "Pixels of a frame; one that declares more is dropped.");
  flags.Switch("--find-max", w.find_max,
               "Find the most copies of STREAM of which 99 % of the frames are answered in time.");
  flags.Text("--trial", w.trial, "Time of each trial of --find-max.");
  flags.Integer("--most-streams", w.most_streams, 1, 100'000, "Streams at which --find-max ends.");
  flags.Number("--min-in-time", w.least_in_time, 0, 100,
               "Percent of the captured frames that must be answered in time, else the exit status is 3.");
  flags.Text("--events", w.events,
             "Write what each frame shows as JSON lines to this file; - for standard output.");
  flags.Text("--frames", w.frames,
             "Write each frame's record and fate as JSON lines to this file; - for standard output.");
  AddServerPlace(flags, w.server);
  flags.Text(
      "--webhook", w.webhook,
      "Post what each frame shows as JSON to this http:// or https:// URL; repeated where that fails.");
  flags.Choice("--webhook-events", w.webhook_events, {"any", "objects", "named"},
               "Events that are posted: any; those with an object; those with a person's name.");
  flags.Text(
      "--live", w.live,
      "HOST:PORT of a page with the last frames, of /state.json and of /metrics (Prometheus). It has no "
      "password.");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<watch::WatchOptions> MakeOptions(const Wanted& w) {
  watch::WatchOptions options;
  if (w.embed.empty() == w.classify.empty() && (w.detect.empty() || !w.embed.empty()))
    return Fail(ErrorCode::kInvalidArgument,
                "give one of --embed MODEL and --classify MODEL, or --detect MODEL alone");
  for (const std::string& stream : w.streams) options.streams.push_back(TRY(watch::ParseStream(stream)));
  options.deadline = TRY_CONTEXT(ParseDuration(w.deadline), "--deadline");
  if (options.deadline < 1ms) return Fail(ErrorCode::kInvalidArgument, "--deadline is at least 1ms");
  if (!w.duration.empty()) options.duration = TRY_CONTEXT(ParseDuration(w.duration), "--duration");
  options.policy = TRY(watch::ParseDropPolicy(w.policy));
  options.source.stall_timeout = TRY_CONTEXT(ParseDuration(w.stall), "--stall-timeout");
  options.source.connect_timeout = TRY_CONTEXT(ParseDuration(w.connect), "--connect-timeout");
  if (std::min(options.source.stall_timeout, options.source.connect_timeout) < 10ms)
    return Fail(ErrorCode::kInvalidArgument, "--stall-timeout and --connect-timeout are at least 10ms");
  options.source.max_pixels = w.max_pixels;
  options.detect = {.model = w.detect,
                    .recipe = w.detect_recipe,
                    .engine = w.engine,
                    .threads = w.threads,
                    .streams = w.engine_streams,
                    .precision = w.precision,
                    .batch = w.batch};
  options.infer = {.model = w.embed.empty() ? w.classify : w.embed,
                   .recipe = w.recipe,
                   .engine = w.engine,
                   .threads = w.threads,
                   .streams = w.engine_streams,
                   .precision = w.precision,
                   .batch = w.batch};
  options.task = w.embed.empty() ? watch::Pipeline::Task::kClassify : watch::Pipeline::Task::kEmbed;
  options.detection.least_score = static_cast<float>(w.detect_score);
  options.detection.class_index = w.detect_class;
  options.tracking.embed_every = w.embed_every;
  options.workers = w.workers;
  if (!w.identities.folder.empty() && w.embed.empty())
    return Fail(ErrorCode::kInvalidArgument, "--identities looks up embeddings: give --embed MODEL");
  if (!w.storage_delay.empty()) {
    if (w.identities.folder.empty())
      return Fail(ErrorCode::kInvalidArgument, "--storage-delay slows look-ups: give --identities DIR");
    const std::string delay = w.storage_delay.substr(w.storage_delay.starts_with('+') ? 1 : 0);
    options.lookup_delay = TRY_CONTEXT(ParseDuration(delay), "--storage-delay");
  }
  return options;
}

// Copies of the streams, one after the other, until there are `count`. Made streams differ in their seeds.
std::vector<watch::StreamSpec> Copies(const std::vector<watch::StreamSpec>& streams, int64_t count) {
  std::vector<watch::StreamSpec> copies;
  for (int64_t i = 0; i < count; ++i) {
    watch::StreamSpec copy = streams[static_cast<size_t>(i) % streams.size()];
    copy.made.seed += static_cast<uint64_t>(i);
    copies.push_back(std::move(copy));
  }
  return copies;
}

std::string TimesText(const char* what, const std::optional<WatchResult::Times>& times) {
  if (!times) return "";
  std::string text = fmt::format("  {:<12}{} ms mean", what, Short(times->mean));
  if (times->p50) text += fmt::format(", p50 {}", Short(*times->p50));
  if (times->p99) text += fmt::format(", p99 {}", Short(*times->p99));
  return text + fmt::format(", max {}\n", Short(times->max));
}

std::string SummaryText(const Console& console, const WatchResult& r) {
  std::string text = fmt::format("{} {}, {}\n", console.Bold("model"), r.model, r.engine);
  text += fmt::format("{} {} captured, {} answered, {} within {} ms ({} %)\n", console.Bold("frames"),
                      Count(r.frames.captured), Count(r.frames.answered), Count(r.frames.in_time),
                      Short(r.deadline_ms), r.in_time_percent ? Short(*r.in_time_percent) : "-");
  for (const auto& [cause, count] : r.frames.dropped)
    text += fmt::format("  dropped     {} {}\n", Count(count), cause);
  text += TimesText("latency", r.latency_ms);
  for (const auto& [stage, times] : r.stages_ms) text += TimesText(stage.c_str(), times);
  for (const WatchResult::Stream& stream : r.per_stream) {
    for (const WatchResult::Fault& fault : stream.faults)
      text += fmt::format("{} {}: {} x {}: {}\n", console.Bold("stream"), stream.name, fault.count,
                          fault.kind, fault.message);
  }
  if (r.find_max) {
    text += fmt::format("{} {} hold {} ms for 99 % of the frames, {}\n", console.Bold("maximum"),
                        Count(r.find_max->streams, "stream"), Short(r.deadline_ms),
                        r.find_max->limited_by_most
                            ? "the most that were tried"
                            : fmt::format("confirmed {} times", r.find_max->confirmations));
  }
  if (r.webhook) {
    text += fmt::format("{} {} posted, {} refused, {} dropped, {} repeated{}{}\n", console.Bold("webhook"),
                        Count(r.webhook->posted, "event"), Count(r.webhook->refused),
                        Count(r.webhook->dropped), Count(r.webhook->retries, "request"),
                        r.webhook->error.empty() ? "" : "; last failure: ", r.webhook->error);
  }
  if (r.storage_delay) text += fmt::format("{} {}\n", console.Bold("storage"), r.storage_delay->text);
  const auto& bottleneck = r.find_max ? r.find_max->bottleneck : r.bottleneck;
  if (bottleneck)
    text += fmt::format("{} {}: {}\n", console.Bold("bottleneck"), bottleneck->stage, bottleneck->text);
  return text;
}

// The search, and the last trial at the number found as the result.
Result<WatchResult> FindMax(const Wanted& w, watch::WatchOptions options, const watch::WatchModels& models,
                            const watch::WatchHooks& hooks, const Clock& clock, const std::stop_token& stop,
                            Console& console) {
  const std::vector<watch::StreamSpec> streams = options.streams;
  options.duration = TRY_CONTEXT(ParseDuration(w.trial), "--trial");
  if (options.duration < 1s) return Fail(ErrorCode::kInvalidArgument, "--trial is at least 1s");
  WatchResult last;
  auto found = TRY(watch::FindMaxStreams({.most = w.most_streams}, [&](int64_t count) -> Result<WatchResult> {
    options.streams = Copies(streams, count);
    WatchResult result = TRY(watch::WatchStreams(options, models, hooks, clock, stop));
    console.EndProgress();
    console.Note(
        fmt::format("{}: {} % in time", Count(count, "stream"), Short(result.in_time_percent.value_or(0))));
    last = result;
    return result;
  }));
  last.find_max = std::move(found);
  return last;
}

// One watch of the streams, with the resources that it and the server use.
Result<WatchResult> WatchOnce(const Wanted& w, const watch::WatchOptions& options,
                              const watch::WatchModels& models, const watch::WatchHooks& hooks,
                              const Clock& clock, const std::stop_token& stop) {
  monitor::ServerPlace place = w.server;
  TRY_STATUS(monitor::FindServer(place, MakeServerAccess(clock)));
  const auto resources = TRY(monitor::ResourceMonitor::Start(clock, {}));
  std::optional<monitor::ServerWatch> server;
  if (place.any()) server = TRY(monitor::ServerWatch::Start(place, MakeServerAccess(clock), clock));
  WatchResult result = TRY(watch::WatchStreams(options, models, hooks, clock, stop));
  result.resources = resources->Stop();
  if (server) result.server_resources = server->Stop();
  return result;
}

Result<int> WatchWith(const Wanted& w, const std::stop_token& stop) {
  const bool takes_stdout = w.events == "-" || w.frames == "-";
  Console console(w.json, takes_stdout ? Console::Stdout::kTaken : Console::Stdout::kFree);
  TRY_STATUS(console.CheckJson());
  if ((w.events == "-") + (w.frames == "-") + (w.json == "-") > 1)
    return Fail(ErrorCode::kInvalidArgument,
                "only one of --json, --events and --frames can be standard output");
  watch::WatchOptions options = TRY(MakeOptions(w));
  std::unique_ptr<watch::LineWriter> events, frames;
  if (!w.events.empty()) events = TRY_CONTEXT(watch::LineWriter::Create(w.events), "--events");
  if (!w.frames.empty()) frames = TRY_CONTEXT(watch::LineWriter::Create(w.frames), "--frames");
  const SteadyClock clock;
  watch::LiveView view;
  std::unique_ptr<watch::LiveServer> live;
  if (!w.live.empty()) {
    live = TRY(watch::LiveServer::Start(w.live, view, clock));
    console.Note("the live page: " + live->url());
  }
  std::unique_ptr<watch::Webhook> webhook;
  if (!w.webhook.empty()) webhook = TRY(watch::Webhook::Create(w.webhook, clock));
  const watch::WatchModels models = TRY(watch::OpenModels(options, clock));
  std::unique_ptr<watch::IdentityLookup> lookup;
  if (!w.identities.folder.empty()) {
    watch::IdentityOptions identities = w.identities;
    if (w.embed.find("://") == std::string::npos) identities.embedding_model = w.embed;
    lookup = TRY_CONTEXT(watch::OpenIdentities(identities), "--identities");
  }
  watch::WatchHooks hooks;
  hooks.lookup = lookup.get();
  if (live) hooks.live = &view;
  const watch::EventFilter filter = TRY(watch::ParseEventFilter(w.webhook_events));
  if (events || webhook) {
    hooks.on_event = [&](const results::WatchEvent& event) {
      if (events) events->Add(event.ToLine());
      if (webhook && watch::Passes(filter, event)) webhook->Add(event);
    };
  }
  if (frames) hooks.on_frame = [&](const results::WatchFrame& frame) { frames->Add(frame.ToLine()); };
  hooks.progress = [&](double elapsed_s, const WatchResult::Frames& counts) {
    console.Progress(elapsed_s, "watch", counts.answered, counts.captured,
                     fmt::format(", {} in time", Count(counts.in_time)));
  };
  WatchResult result = w.find_max ? TRY(FindMax(w, options, models, hooks, clock, stop, console))
                                  : TRY(WatchOnce(w, options, models, hooks, clock, stop));
  console.EndProgress();
  for (const auto& lines : {events.get(), frames.get()}) {
    if (lines == nullptr) continue;
    TRY_STATUS(lines->Finish());
    result.lines_dropped += lines->dropped();
  }
  if (webhook) result.webhook = webhook->Finish(kWebhookPatience);
  if (lookup) result.identities = EscapeBytes(w.identities.folder);
  result.command = record::CommandLine(CommandLine());
  result.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  console.Text(SummaryText(console, result));
  TRY_STATUS(console.Json(result.ToJson()));
  if (result.interrupted) return kInterrupted;
  const bool met =
      result.in_time_percent.value_or(0) >= w.least_in_time && (!w.find_max || result.find_max->streams > 0);
  return met ? kDone : kClaimInvalid;
}

}  // namespace

int Watch(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Interrupt interrupt;
  const Result<int> status = WatchWith(wanted, interrupt.token());
  if (!status && status.error().code == ErrorCode::kCancelled) return kInterrupted;
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
