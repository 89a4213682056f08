#include <optional>
#include <stop_token>

#include "cli/flags.h"
#include "cli/run_verb.h"
#include "cli/server_place.h"
#include "watch/play.h"
#include "watch/watch_text.h"

namespace weir::cli {
namespace {

std::optional<int> ParseFlags(const Arguments& arguments, watch::WatchRequest& r) {
  watch::WatchOptions& o = r.options;
  Flags flags(
      "watch",
      "Follows live streams under a deadline: decodes, detects, tracks, classifies or embeds, and accounts "
      "for "
      "every frame from its capture on.",
      "weir watch made:fps=10 --classify made/tiny --deadline 100ms --duration 10s --json result.json");
  flags.Texts("STREAM", r.streams,
              "made:KEY=VALUE,..., http://HOST/PATH (MJPEG), rtsp://HOST/PATH, or a video file", true);
  flags.Text("--detect", o.detect.model,
             "Detection model: YuNet, FastestDet or an SSD. Without it the whole frame is one object.");
  flags.Text("--embed", r.embed, "Embedding model, a file, a folder or a server's URL.");
  flags.Text("--classify", r.classify, "Classification model, instead of --embed.");
  flags.Text("--recipe", o.infer.recipe,
             "Recipe of the embedding or classification model, instead of its own.");
  flags.Text("--detect-recipe", o.detect.recipe, "Recipe of the detection model, instead of its own.");
  flags.Number("--detect-score", o.detection.least_score, 0, 1, "Least score of a detection.");
  flags.Integer("--detect-class", o.detection.class_index, -1, 1'000'000,
                "Only detections of this class; -1: any.");
  flags.Integer("--embed-every", o.tracking.embed_every, 1, 1'000'000,
                "Frames between two embeddings of one track.");
  flags.Text(
      "--identities", r.identities.folder,
      "Index of weir identities in which embeddings are looked up. It must have the embedding model's hash.");
  flags.OneOf("--identity-access", r.identities.access, identity::kRowAccesses,
              "How rows of the index are read: from a mapping, by direct reads all at once, or from memory.");
  flags.Number("--false-alarms", r.identities.false_alarms, 1e-9, 0.5,
               "Share of strangers that may be given a name; the threshold follows from it and from the "
               "number enrolled.");
  flags.Number("--threshold", r.identities.threshold, -1, 1,
               "Least cosine of a name, instead of --false-alarms; -1: not given.");
  flags.Time(
      "--storage-delay", o.lookup_delay, Duration{}, "",
      "Time added to each look-up, as +180us: what a slower storage would do to its one round of reads.");
  flags.Time("--deadline", o.deadline, 1ms, "100ms", "Time from a frame's capture to its answer.");
  flags.Time("--duration", o.duration, Duration{}, "",
             "Time to follow the streams; without it until they end or Ctrl-C.");
  flags.OneOf("--drop", o.policy,
              {watch::DropPolicy::kLatest, watch::DropPolicy::kNonReference, watch::DropPolicy::kToKeyFrame,
               watch::DropPolicy::kNone},
              "Frames to leave out when a stream is behind: all but the newest; frames that no other needs; "
              "all up to the "
              "next key frame; none before their deadline.");
  flags.Text("--engine", r.engine.engine,
             "onnxruntime, openvino or emulated:..., instead of the models' own.");
  flags.Integer("--threads", r.engine.threads, 0, 4096,
                "CPU threads of each model's engine (0: its own choice).");
  flags.Integer("--engine-streams", r.engine.streams, 0, 4096,
                "Batches that compute side by side (0: the engine's own choice).");
  flags.Text("--device", r.engine.device,
             "Device of the models, as in weir run: cpu (default), cuda:N, gpu:N, npu.");
  flags.Text("--precision", r.engine.precision,
             "Arithmetic where the model says float: f32 (default), bf16, f16.");
  flags.Integer("-b,--batch", r.engine.batch, 0, 65536,
                "Frames a batch at most (0: 1 on a CPU, 8 on an accelerator).");
  flags.Integer("--workers", o.workers, 0, 1024, "Threads that decode and scale (0: one a CPU).");
  flags.Time("--connect-timeout", o.source.connect_timeout, 10ms, "5s", "Time for a connection to a stream.");
  flags.Time("--stall-timeout", o.source.stall_timeout, 10ms, "5s",
             "Time without a frame after which a stream is connected again.");
  flags.Integer64("--max-pixels", o.source.max_pixels, 1, int64_t{1} << 40,
                  "Pixels of a frame; one that declares more is dropped.");
  flags.Switch("--find-max", r.find_max,
               "Find the most copies of STREAM of which 99 % of the frames are answered in time.");
  flags.Time("--trial", r.trial, 1s, "10s", "Time of each trial of --find-max.");
  flags.Integer("--most-streams", r.most_streams, 1, 100'000, "Streams at which --find-max ends.");
  flags.Number("--min-in-time", r.least_in_time, 0, 100,
               "Percent of the captured frames that must be answered in time, else the exit status is 3.");
  flags.Text("--events", r.events,
             "Write what each frame shows as JSON lines to this file; - for standard output.");
  flags.Text("--frames", r.frames,
             "Write each frame's record and fate as JSON lines to this file; - for standard output.");
  AddServerPlace(flags, r.server);
  flags.Text(
      "--webhook", r.webhook,
      "Post what each frame shows as JSON to this http:// or https:// URL; repeated where that fails.");
  flags.OneOf("--webhook-events", r.webhook_events, watch::kEventFilters,
              "Events that are posted: any; those with an object; those with a person's name.");
  flags.Text(
      "--live", r.live,
      "HOST:PORT of a page with the last frames, of /state.json and of /metrics (Prometheus). It has no "
      "password.");
  flags.Text("--json", r.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<int> WatchWith(const watch::WatchRequest& request, const std::stop_token& stop) {
  const bool takes_stdout = request.events == "-" || request.frames == "-";
  Console console(request.json, takes_stdout ? Console::Stdout::kTaken : Console::Stdout::kFree,
                  Console::Readers::kOwner);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  const auto hooks = HooksOf<watch::PlayHooks>(console, "watch");
  auto result = TRY(watch::PlayWatch(request, MakeServerAccess(clock), hooks, clock, stop));
  AddProvenance(result);
  console.Text(watch::WatchText(console.style(), result));
  TRY_STATUS(console.Json(result.ToJson()));
  if (result.interrupted) return kInterrupted;
  return watch::MeetsClaim(request, result) ? kDone : kClaimInvalid;
}

}  // namespace

int Watch(const Arguments& arguments) {
  return RunVerb<watch::WatchRequest>(arguments, ParseFlags, WatchWith);
}

}  // namespace weir::cli
