#include "watch/play.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/count.h"
#include "base/json.h"
#include "watch/find_max.h"
#include "watch/line_writer.h"
#include "watch/live_server.h"
#include "watch/webhook.h"

namespace weir::watch {
namespace {

using results::WatchResult;

constexpr Duration kWebhookPatience = 5s;  // for what still waits at the end

// The outputs of a watch while it runs.
struct Outputs {
  std::unique_ptr<LineWriter> events, frames;
  LiveView view;
  std::unique_ptr<LiveServer> live;
  std::unique_ptr<Webhook> webhook;
  std::unique_ptr<IdentityLookup> lookup;
};

// A path that is no stream is told before a model is loaded.
Status CheckFiles(const WatchOptions& options, const Clock& clock) {
  for (const StreamSpec& spec : options.streams) {
    if (spec.kind != StreamKind::kFile) continue;
    const auto source = TRY(MakeSource(spec, options.source, clock));
    if (const Status there = source->Connect(clock.Now() + options.source.connect_timeout); !there)
      return Context("stream", there.error());
  }
  return {};
}

Status Open(const WatchRequest& request, const Clock& clock, Outputs& outputs) {
  if (!request.events.empty()) outputs.events = TRY_CONTEXT(LineWriter::Create(request.events), "--events");
  if (!request.frames.empty()) outputs.frames = TRY_CONTEXT(LineWriter::Create(request.frames), "--frames");
  if (!request.live.empty()) outputs.live = TRY(LiveServer::Start(request.live, outputs.view, clock));
  if (!request.webhook.empty()) outputs.webhook = TRY(Webhook::Create(request.webhook, clock));
  return {};
}

Result<std::unique_ptr<IdentityLookup>> OpenLookup(const WatchRequest& request) {
  if (request.identities.folder.empty()) return nullptr;
  IdentityOptions identities = request.identities;
  if (request.embed.find("://") == std::string::npos) identities.embedding_model = request.embed;
  return TRY_CONTEXT(OpenIdentities(identities), "--identities");
}

WatchHooks HooksFor(const WatchRequest& request, Outputs& outputs, const PlayHooks& hooks) {
  WatchHooks made;
  made.lookup = outputs.lookup.get();
  if (outputs.live) made.live = &outputs.view;
  if (outputs.events || outputs.webhook) {
    made.on_event = [&outputs, filter = request.webhook_events](const results::WatchEvent& event) {
      if (outputs.events) outputs.events->Add(event.ToLine());
      if (outputs.webhook && Passes(filter, event)) outputs.webhook->Add(event);
    };
  }
  if (outputs.frames)
    made.on_frame = [&outputs](const results::WatchFrame& frame) { outputs.frames->Add(frame.ToLine()); };
  made.note = hooks.note;
  made.progress = [&hooks](double elapsed_s, const WatchResult::Frames& counts) {
    hooks.progress(elapsed_s, counts.answered, counts.captured,
                   fmt::format(", {} in time", Count(counts.in_time)));
  };
  return made;
}

// Returns the last trial at the number that the search found.
Result<WatchResult> FindMax(const WatchRequest& request, WatchOptions options, const WatchModels& models,
                            const WatchHooks& watch_hooks, const PlayHooks& hooks, const Clock& clock,
                            const std::stop_token& stop) {
  const std::vector<StreamSpec> streams = options.streams;
  WatchResult last;
  auto found = TRY(FindMaxStreams({.most = request.most_streams}, [&](int64_t count) -> Result<WatchResult> {
    options.streams = CopiesOf(streams, count);
    WatchResult result = TRY(WatchStreams(options, models, watch_hooks, clock, stop));
    hooks.progress_ended();
    hooks.note(
        fmt::format("{}: {} % in time", Count(count, "stream"), Short(result.in_time_percent.value_or(0))));
    last = result;
    return result;
  }));
  last.find_max = std::move(found);
  return last;
}

// One watch of the streams, with the resources that it and the server use.
Result<WatchResult> WatchOnce(const WatchRequest& request, const WatchOptions& options,
                              const WatchModels& models, const WatchHooks& watch_hooks,
                              const monitor::ServerAccess& access, const Clock& clock,
                              const std::stop_token& stop) {
  monitor::ServerPlace place = request.server;
  TRY_STATUS(monitor::FindServer(place, access));
  const auto resources = TRY(monitor::ResourceMonitor::Start(clock, {}));
  std::optional<monitor::ServerWatch> server;
  if (place.any()) server = TRY(monitor::ServerWatch::Start(place, access, clock));
  WatchResult result = TRY(WatchStreams(options, models, watch_hooks, clock, stop));
  result.resources = resources->Stop();
  if (server) result.server_resources = server->Stop();
  return result;
}

}  // namespace

Result<WatchResult> PlayWatch(const WatchRequest& request, const monitor::ServerAccess& access,
                              const PlayHooks& hooks, const Clock& clock, const std::stop_token& stop) {
  const WatchOptions options = TRY(CompleteRequest(request));
  TRY_STATUS(CheckFiles(options, clock));
  Outputs outputs;
  TRY_STATUS(Open(request, clock, outputs));
  if (outputs.live) hooks.note("the live page: " + outputs.live->url());
  const WatchModels models = TRY(OpenModels(options, clock));
  outputs.lookup = TRY(OpenLookup(request));
  const WatchHooks watch_hooks = HooksFor(request, outputs, hooks);
  WatchResult result = request.find_max
                           ? TRY(FindMax(request, options, models, watch_hooks, hooks, clock, stop))
                           : TRY(WatchOnce(request, options, models, watch_hooks, access, clock, stop));
  hooks.progress_ended();
  for (LineWriter* lines : {outputs.events.get(), outputs.frames.get()}) {
    if (lines == nullptr) continue;
    TRY_STATUS(lines->Finish());
    result.lines_dropped += lines->dropped();
  }
  if (outputs.webhook) result.webhook = outputs.webhook->Finish(kWebhookPatience);
  if (outputs.lookup) result.identities = EscapeBytes(request.identities.folder);
  return result;
}

bool MeetsClaim(const WatchRequest& request, const WatchResult& result) {
  return result.in_time_percent.value_or(0) >= request.least_in_time &&
         (!request.find_max || (result.find_max && result.find_max->streams > 0));
}

}  // namespace weir::watch
