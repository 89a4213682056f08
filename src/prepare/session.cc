#include "prepare/session.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/count.h"
#include "base/file.h"
#include "base/json.h"
#include "base/named_file.h"
#include "dataset/objects.h"
#include "prepare/join.h"
#include "prepare/part.h"
#include "prepare/preview.h"
#include "prepare/summary_text.h"
#include "prepare/verify_folder.h"

namespace weir::prepare {
namespace {

// Hands progress on, as often as a person can read it.
class Teller {
 public:
  Teller(const SessionHooks& hooks, const Clock& clock, std::string what)
      : hooks_(hooks), clock_(clock), what_(std::move(what)), begin_(clock.Now()), next_(begin_) {}

  void Tell(int64_t done, int64_t total, const std::function<std::string(double elapsed_s)>& extra) {
    const Instant now = clock_.Now();
    if (now < next_) return;
    next_ = now + 200ms;
    const double elapsed_s = Seconds(now - begin_);
    hooks_.progress(what_, elapsed_s, done, total, extra(elapsed_s));
  }
  void Tell(const Progress& p) {
    Tell(p.done - p.begun_at, p.total - p.begun_at, [&p](double elapsed_s) {
      const double rate = elapsed_s > 0 ? static_cast<double>(p.bytes_in) / elapsed_s : 0;
      return fmt::format(", {}/s, {} rejected", Size(rate), Count(p.rejected));
    });
  }

 private:
  const SessionHooks& hooks_;
  const Clock& clock_;
  const std::string what_;
  const Instant begin_;
  Instant next_;
};

// `folder` lies in the request's folder, or is it. A published set goes to the same place below the URL.
Result<SessionEnd> Finish(const PrepareRequest& request, const PrepareSummary& summary,
                          const std::string& folder, const std::stop_token& stop) {
  std::string shown = folder;
  if (!request.publish.empty()) {
    shown = request.publish + folder.substr(request.options.folder.size());
    TRY_STATUS(dataset::ObjectReader({}).Publish(folder, shown, stop));
  }
  if (!request.preview.empty())
    TRY_STATUS(WritePreview(folder, request.preview, {.seed = static_cast<uint64_t>(request.seed)}));
  results::PrepareResult result = MakeResult(summary, shown);
  if (request.make > 0 || request.sample > 0 || !request.options.split.empty()) result.seed = request.seed;
  return SessionEnd{.result = std::move(result),
                    .text = SummaryText(summary, shown),
                    .clean = RejectedCount(summary) == 0,
                    .nothing = summary.images == 0 && !request.options.part};
}

Result<SessionEnd> Make(PrepareRequest& request, const SessionHooks& hooks, const Clock& clock,
                        const std::stop_token& stop) {
  const Seed seed(static_cast<uint64_t>(request.seed));
  if (!request.recognise.empty()) TRY_STATUS(hooks.add_judge(request, request.options));
  std::unique_ptr<Sources> sources;
  Feed feed;
  if (request.make > 0) {
    feed = hooks.made_feed(request.make, seed);
  } else {
    request.sources.fetch.stop = stop;
    sources = TRY(Sources::Open(request.sources));
    feed = sources->MakeFeed();
  }
  if (request.sample > 0) {
    std::vector<int64_t> chosen = SampleOf(feed.count - feed.not_taken, request.sample, seed.value());
    feed = Pick(std::move(feed), std::move(chosen));
    feed.arguments.sample = request.sample;
    feed.arguments.seed = seed.value();
  }
  Teller teller(hooks, clock, "prepare");
  const auto summary =
      PrepareSet(feed, request.options, clock, stop, [&](const Progress& p) { teller.Tell(p); });
  hooks.progress_ended();
  if (!summary) return std::unexpected(summary.error());
  const std::string& folder = request.options.folder;
  return Finish(request, *summary,
                request.options.part ? folder + "/" + PartFolder(*request.options.part) : folder, stop);
}

Result<SessionEnd> Join(const PrepareRequest& request, const SessionHooks& hooks, const Clock& clock,
                        const std::stop_token& stop) {
  Teller teller(hooks, clock, "join");
  const auto summary = JoinParts({.parts = request.sources.paths,
                                  .folder = request.options.folder,
                                  .stop = stop,
                                  .progress = [&](const Progress& p) { teller.Tell(p); }},
                                 clock);
  hooks.progress_ended();
  if (!summary) return std::unexpected(summary.error());
  return Finish(request, *summary, request.options.folder, stop);
}

// A copy goes by the name of what it is a copy of.
std::string InNameOf(const PrepareRequest& request, std::string text) {
  if (request.verify_name.empty()) return text;
  const std::string copy = EscapeBytes(request.verify);
  for (size_t at = 0; (at = text.find(copy, at)) != text.npos; at += request.verify_name.size())
    text.replace(at, copy.size(), request.verify_name);
  return text;
}

Result<SessionEnd> Verify(const PrepareRequest& request, const SessionHooks& hooks, const Clock& clock,
                          const std::stop_token& stop) {
  Teller teller(hooks, clock, "verify");
  auto result =
      VerifyFolder(request.verify, {.stop = stop, .progress = [&](int64_t done, int64_t total) {
                                      teller.Tell(done, total, [](double) { return std::string(); });
                                    }});
  hooks.progress_ended();
  if (!result) return Fail(result.error().code, InNameOf(request, result.error().message));
  for (auto& set : result->sets) set.folder = InNameOf(request, std::move(set.folder));
  return SessionEnd{.result = *result, .text = VerifyText(*result), .clean = result->faults == 0};
}

}  // namespace

Result<SessionEnd> Prepare(PrepareRequest request, const SessionHooks& hooks, const Clock& clock,
                           const std::stop_token& stop) {
  TRY_STATUS(CheckRequest(request));
  TRY_STATUS(Localise(request, stop));
  if (!request.preview.empty() && !LiesInside(request.preview, request.options.folder)) {
    if (const Status writable = CheckWritable(request.preview); !writable)
      return Context("--preview", writable.error());
  }
  if (!request.verify.empty()) return Verify(request, hooks, clock, stop);
  if (request.join) return Join(request, hooks, clock, stop);
  TRY_STATUS(CompleteRequest(request));
  return Make(request, hooks, clock, stop);
}

}  // namespace weir::prepare
