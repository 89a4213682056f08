#include "cli/probe_storage.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "advise/cards.h"
#include "base/file.h"
#include "cli/flags.h"
#include "cli/probe_hosts.h"
#include "cli/probe_storage_flags.h"
#include "cli/run_verb.h"
#include "prepare/prepare.h"
#include "probe/probe_result.h"
#include "probe/storage_run.h"
#include "report/html.h"
#include "report/probe_report.h"

namespace weir::cli {
namespace {

// Connects the phase etl with the module that prepares sets.
Result<probe::EtlFigures> PrepareOriginals(dataset::SetFormat format, const Clock& clock, int64_t count,
                                           const probe::ReadOriginal& read, const std::string& folder,
                                           std::stop_token stop, const std::function<void()>& moved) {
  prepare::Feed feed{.count = count};
  feed.get = [&read](int64_t index) -> prepare::FedPicture {
    auto bytes = read(index);
    const std::string name = fmt::format("{:08}", index);
    if (!bytes)
      return {.source = name,
              .encoded = std::unexpected(image::Reject{image::RejectReason::kFailed, bytes.error().message})};
    return {.source = name, .encoded = *std::move(bytes)};
  };
  feed.name = [](int64_t index) { return fmt::format("{:08}", index); };
  feed.label = [](int64_t) { return std::optional<int>(); };
  dataset::Geometry geometry{.short_side = 256};
  if (format == dataset::SetFormat::kRaw) geometry.crop = dataset::Size{224, 224};
  const auto summary =
      TRY(prepare::PrepareSet(feed, {.folder = folder, .format = format, .geometry = geometry}, clock,
                              std::move(stop), [&](const auto&) { moved(); }));
  int64_t rejected = 0;
  for (const auto& [reason, rejects] : summary.rejected) rejected += rejects;
  return probe::EtlFigures{.images = summary.images,
                           .rejected = rejected,
                           .bytes_in = static_cast<uint64_t>(summary.bytes_in),
                           .bytes_out = static_cast<uint64_t>(summary.bytes_out),
                           .wall = FromSeconds(summary.wall_s),
                           .read = summary.times.read,
                           .decode = summary.times.decode,
                           .resize = summary.times.resize,
                           .encode = summary.times.encode,
                           .write = summary.times.write,
                           .workers = summary.workers};
}

probe::StorageHooks HooksFor(const probe::StorageRequest& request, Console& console, const Clock& clock) {
  return {.note = [&console](const std::string& line) { console.Note(line); },
          .progress = [&console](
                          double elapsed_s, int64_t runs,
                          const std::string& extra) { console.Progress(elapsed_s, "runs", runs, 0, extra); },
          .progress_ended = [&console] { console.EndProgress(); },
          .prepare =
              [&request, &clock](int64_t count, const probe::ReadOriginal& read, const std::string& folder,
                                 std::stop_token stop, const std::function<void()>& moved) {
                return PrepareOriginals(request.prepare_format, clock, count, read, folder, std::move(stop),
                                        moved);
              },
          .draw = DrawPictures,
          .predict_step = advise::PredictedStep};
}

Result<probe::StorageAnswer> ProbeThere(const Arguments& arguments, const probe::StorageRequest& request,
                                        const probe::StorageProfile& profile, Console& console,
                                        const Clock& clock, const std::stop_token& stop) {
  const auto report = TRY(ProbeStorageOnHosts(arguments, request, profile, console, clock, stop));
  return probe::StorageAnswer{
      .result = probe::MakeResult(report), .hung = false, .fed = report.train.fed.value.has_value()};
}

Result<int> ProbeStorage(const Arguments& arguments, const probe::StorageRequest& request, Console& console) {
  const Interrupt interrupt;
  static const SteadyClock clock;  // outlives a thread in a read that hangs
  TRY_STATUS(probe::CheckStorageRequest(request));
  const probe::StorageHooks hooks = HooksFor(request, console, clock);
  const probe::StorageProfile profile = TRY(probe::FindDemand(request, hooks, clock));
  std::optional<probe::ProbedSets> sets;
  probe::StorageAnswer answer = TRY(
      request.join.any() ? ProbeThere(arguments, request, profile, console, clock, interrupt.token())
                         : probe::RunStorageProbe(request, profile, hooks, clock, interrupt.token(), sets));
  answer.result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(request.seed)})
          .ToJson();
  console.Text(probe::ProbeText(console.style(), answer.result));
  if (!request.html.empty())
    TRY_STATUS(WriteFileWhole(request.html, report::ToHtml(report::ProbeDocument(answer.result))));
  TRY_STATUS(console.Json(answer.result.ToJson()));
  const bool invalid = answer.result.verdict.verdict == ToString(results::Standing::kInvalid);
  const int status = !invalid && (answer.fed || !request.must_feed) ? kDone : kClaimInvalid;
  if (answer.hung) probe::EndDespiteHungReads(*sets, status);
  return status;
}

}  // namespace

int ProbeStorageVerb(const Arguments& arguments) {
  probe::StorageRequest request;
  if (const auto status = ParseStorageFlags(arguments, request)) return *status;
  Console console(request.json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const auto status = ProbeStorage(arguments, request, console);
  if (status) return *status;
  FailWith(status.error());
  return status.error().code == ErrorCode::kCancelled ? kInterrupted : ExitStatus(status.error());
}

}  // namespace weir::cli
