#include "run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/count.h"
#include "base/file.h"
#include "base/thread.h"
#include "dataset/set.h"
#include "record/provenance.h"
#include "run/answers.h"
#include "run/label_check.h"
#include "run/predictions.h"
#include "run/run_summary.h"

namespace weir::run {
namespace {

Status CheckRequest(const RunRequest& request, const SessionHooks& hooks) {
  if (!request.answers.empty() && request.answers == request.json) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--answers and --json both name {}: give each a file of its own", request.answers));
  }
  if (!request.answers.empty() && request.answers != "-") {
    if (const Status writable = CheckWritable(request.answers); !writable)
      return Context("--answers", writable.error());
  }
  if (request.sync() && request.in_flight > 1)
    hooks.note("--in-flight has no effect in sync mode: one batch is sent at a time");
  return {};
}

Result<dataset::Listing> ListData(const RunRequest& request, const Target& target) {
  dataset::Listing listing = TRY(dataset::ListInputs(request.data));
  if (listing.inputs.empty()) {
    return Fail(ErrorCode::kNotFound, fmt::format("no pictures in {} ({} files skipped)",
                                                  record::CommandLine(request.data), listing.skipped.size()));
  }
  for (const auto& set : listing.sets) TRY_STATUS(dataset::CheckLabelRule(*set));
  TRY_STATUS(CheckListing(listing, target));
  return listing;
}

// The measured part: from the first picture to the last answer.
Status Measure(Application& application, Predictions& predictions, const monitor::ServerPlace& place,
               const monitor::ServerAccess& access, const SessionHooks& hooks, const Clock& clock,
               Backend& backend, RunSummary& summary) {
  TRY_STATUS(application.MakeReady());
  backend.Begin();
  const auto resources = TRY(monitor::ResourceMonitor::Start(clock, backend.WatchOptions()));
  std::optional<monitor::ServerWatch> server;
  if (place.any()) server = TRY(monitor::ServerWatch::Start(place, access, clock));
  const Duration cpu_before = ProcessCpuTime();
  summary.report = application.Run(predictions, [&](const Progress& p) {
    hooks.progress(p.elapsed_s, p.done, p.total,
                   p.rejected > 0 ? fmt::format(", {} rejected", p.rejected) : "");
  });
  const double cpu_s = Seconds(ProcessCpuTime() - cpu_before);
  hooks.progress_ended();
  summary.resources = resources->Stop();
  if (server) summary.server_resources = server->Stop();
  backend.End();
  const double observer_s = summary.resources.observer_cpu * summary.resources.wall_s;
  AddCosts(backend, std::max(0.0, cpu_s - observer_s), summary.resources, summary.report.costs);
  return {};
}

Status Wholeness(const Report& report) {
  if (!report.device_failure.empty())
    return Fail(ErrorCode::kInternal, fmt::format("{}; the run ended after {}", report.device_failure,
                                                  Count(report.images, "answer")));
  if (report.store_failure.empty()) return {};
  return Fail(ErrorCode::kIo, fmt::format("{}; the run ended after {}. Run the same command again once the "
                                          "store gives the object",
                                          report.store_failure, Count(report.images, "answer")));
}

}  // namespace

Options OptionsFor(const RunRequest& request, int batch, int in_flight, int cpus) {
  Options options{.mode = request.mode,
                  .batch = batch,
                  .in_flight = in_flight,
                  .decode_threads = request.decode_threads,
                  .no_files = request.no_files,
                  .repeat_data = request.repeat_data,
                  .top = request.top,
                  .loading = {}};
  if (options.decode_threads == 0) options.decode_threads = request.sync() ? 1 : cpus;
  options.loading.decode.max_pixels = request.max_pixels;
  options.loading.decode.tolerate_damage = request.tolerate_damage;
  options.loading.max_file_bytes = request.max_file_bytes;
  return options;
}

Result<RunEnd> RunOver(const RunRequest& request, const monitor::ServerAccess& access, const TextStyle& style,
                       const SessionHooks& hooks, const Clock& clock, const std::stop_token& stop) {
  TRY_STATUS(CheckRequest(request, hooks));
  monitor::ServerPlace server = request.server;
  TRY_STATUS(monitor::FindServer(server, access));
  const std::unique_ptr<Backend> backend = TRY(OpenBackend(request, clock));
  const Target& target = backend->target();
  if (request.batch > 0 && target.fixed_batch && request.batch != *target.fixed_batch) {
    hooks.note(fmt::format("model {} has a fixed batch of {}: it runs at that, not at {}", backend->name(),
                           *target.fixed_batch, request.batch));
  }
  const dataset::Listing listing = TRY(ListData(request, target));
  TRY_STATUS(backend->Load());
  Options options = OptionsFor(request, backend->batch(), backend->in_flight(), UsableCpus());
  options.lost = [&backend] { return backend->lost(); };
  std::unique_ptr<AnswerWriter> writer;
  if (!request.answers.empty())
    writer = TRY(AnswerWriter::Create(request.answers == "-" ? "/dev/stdout" : request.answers));
  Predictions predictions(std::move(writer), target.labels);
  RunSummary summary{.mode = std::string(ToString(request.mode)),
                     .options = options,
                     .backend = *backend,
                     .listing = listing};
  summary.labels = CheckLabels(listing, target);
  Application application(backend->service(), target, listing, clock, options);
  {
    const std::stop_callback on_stop(stop, [&] { application.Stop(); });
    TRY_STATUS(Measure(application, predictions, server, access, hooks, clock, *backend, summary));
  }
  TRY_STATUS(predictions.Finish());
  summary.shown = predictions.shown();
  summary.command = record::CommandLine(request.command);
  summary.bounds = results::FindBounds(summary.report.costs);
  summary.bottleneck = results::FindBottleneck(summary.report.costs);
  const record::Provenance provenance =
      record::CollectProvenance({.command = request.command, .libraries = backend->Libraries()});
  return RunEnd{.result = TRY(MakeResult(summary, provenance)),
                .text = SummaryText(style, summary),
                .whole = Wholeness(summary.report),
                .interrupted = summary.report.stopped,
                .failed = summary.report.failed,
                .rejected = summary.report.rejected.total};
}

}  // namespace weir::run
