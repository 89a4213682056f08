#include "prepare/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "dataset/set_text.h"
#include "prepare/in_order.h"
#include "prepare/making.h"

namespace weir::prepare {
namespace {

// Pictures done that wait to be written: as many as are made while the disk has its journal written.
constexpr int64_t kWaitingPerWorker = 16;
constexpr int64_t kWaitingBytes = 64 << 20;

std::string_view NameOf(image::Sampling sampling) {
  switch (sampling) {
    case image::Sampling::k444:
      return "444";
    case image::Sampling::k422:
      return "422";
    case image::Sampling::k420:
      return "420";
  }
  return "";
}

bool IsFolderName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
}

Status CheckVariations(const Options& options) {
  if (options.geometry && !options.variations.empty())
    return Fail(ErrorCode::kInvalidArgument, "give either a geometry or variations");
  for (const Variation& one : options.variations) {
    const auto same = [&](const Variation& other) { return other.name == one.name; };
    if (!IsFolderName(one.name) || std::ranges::count_if(options.variations, same) != 1) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the variations' recipes need names of their own to make folders of: {}", one.name));
    }
  }
  return {};
}

Status CheckOptions(const Options& options) {
  TRY_STATUS(CheckVariations(options));
  const auto has_size = [](const Variation& one) { return one.geometry.OutputSize().has_value(); };
  const bool sized = options.variations.empty() ? options.geometry && options.geometry->OutputSize()
                                                : std::ranges::all_of(options.variations, has_size);
  if (options.format == dataset::SetFormat::kRaw && !sized) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "raw records need pictures of one size: give a recipe with a crop, or a resize to width and height");
  }
  if (options.jpeg.quality < 1 || options.jpeg.quality > 100) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("JPEG quality {} is not within 1 to 100", options.jpeg.quality));
  }
  for (const SplitShare& share : options.split) {
    if (!dataset::IsSplitName(share.name) || !(share.share > 0) || options.split.size() > 100)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" cannot be a share", share.name));
  }
  if (options.workers < 0 || options.replicate < 0 || options.min_bytes < 0 || options.shard_bytes < 1) {
    return Fail(ErrorCode::kInvalidArgument,
                "workers, replicate and min_bytes may not be negative, nor shard_bytes 0");
  }
  return {};
}

MakerOptions MakerOptionsOf(const Options& options) {
  MakerOptions maker{.format = options.format,
                     .geometries = {},
                     .encoding = options.encoding,
                     .jpeg = options.jpeg,
                     .decode = options.decode,
                     .shrink = options.shrink,
                     .sha256 = options.sha256,
                     .min_bytes = options.min_bytes};
  if (options.geometry) maker.geometries.push_back(*options.geometry);
  for (const Variation& variation : options.variations) maker.geometries.push_back(variation.geometry);
  return maker;
}

int64_t BytesOf(const Result<Outcome>& outcome) {
  int64_t bytes = 0;
  for (size_t i = 0; outcome && i < outcome->made.size(); ++i) {
    if (outcome->made[i]) bytes += static_cast<int64_t>(outcome->made[i]->bytes.size());
  }
  return bytes;
}

// Has `workers` threads make the inputs that are left, and writes them here in their order.
Status MakeAll(const Job& job, const Feed& feed, const Options& options, int workers, const Clock& clock,
               const std::stop_token& stop, Making& making) {
  const MakerOptions maker_options = MakerOptionsOf(options);
  const int64_t first = making.next(), count = job.end - first;
  InOrder<Result<Outcome>> outcomes(count, workers * kWaitingPerWorker, kWaitingBytes);
  std::vector<std::jthread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.push_back(StartThread(fmt::format("prepare-{}", i), [&](std::stop_token) {
      Maker maker(maker_options, options.make_judge ? options.make_judge() : Judge(), clock);
      while (const std::optional<int64_t> index = outcomes.Take()) {
        Result<Outcome> outcome = maker.Make(feed, first + *index);
        const int64_t bytes = BytesOf(outcome);
        outcomes.Put(*index, std::move(outcome), bytes);
      }
    }));
  }
  Status status;
  for (int64_t i = 0; i < count && status; ++i) {
    const Result<Outcome> outcome = outcomes.Next();
    // Asked after the wait: a URL whose fetching was ended by the stop is no reject.
    if (stop.stop_requested()) {
      status = Fail(ErrorCode::kCancelled,
                    fmt::format("stopped after {} of {}: the same command goes on from there",
                                first + i - job.first, job.end - job.first));
      break;
    }
    status = outcome ? making.Write(*outcome) : Status(std::unexpected(outcome.error()));
  }
  outcomes.Stop();
  return status;
}

Status Run(const Job& job, const Feed& feed, const Options& options, int workers, const Clock& clock,
           const std::stop_token& stop, Making& making) {
  TRY_STATUS(MakeAll(job, feed, options, workers, clock, stop, making));
  if (feed.check_unchanged) {
    Status unchanged = feed.check_unchanged();
    if (!unchanged) {
      return Fail(unchanged.error().code,
                  unchanged.error().message + ": run the same command again, which goes on from here");
    }
  }
  return making.Replicate(stop);
}

}  // namespace

Json OptionsJson(const Options& options) {
  Json json = Json::object();
  const bool prepared = options.geometry || !options.variations.empty();
  if (prepared && options.format != dataset::SetFormat::kRaw) {
    const bool jpeg = options.encoding == Encoding::kJpeg;
    json["encoding"] = jpeg ? "jpeg" : "png";
    if (jpeg) {
      json["quality"] = options.jpeg.quality;
      json["sampling"] = NameOf(options.jpeg.sampling);
    }
  }
  if (options.format != dataset::SetFormat::kFiles) json["shard_bytes"] = options.shard_bytes;
  json["max_pixels"] = options.decode.max_pixels;
  if (options.decode.tolerate_damage) json["tolerate_damage"] = true;
  if (options.shrink) json["shrink"] = true;
  if (options.sha256) json["sha256"] = true;
  if (options.min_bytes > 0) json["min_bytes"] = options.min_bytes;
  if (options.reject_duplicates) json["reject_duplicates"] = true;
  if (options.replicate > 0) json["replicate"] = options.replicate;
  if (!options.split.empty()) {
    json["split"] = SplitText(options.split);
    json["seed"] = options.split_seed;
  }
  if (options.make_judge) json["judged_by"] = EscapeBytes(options.judged_by);
  return json;
}

PrepareSummary SummaryOf(const std::vector<dataset::SetFacts>& sets) {
  PrepareSummary summary;
  summary.format = sets.front().format;
  for (const dataset::SetFacts& facts : sets) {
    summary.images += facts.images;
    summary.bytes_out += facts.bytes;
    for (const auto& [reason, count] : facts.rejected) summary.rejected[reason] += count;
    if (facts.split.empty()) continue;
    auto found = std::ranges::find(summary.splits, facts.split, &std::pair<std::string, int64_t>::first);
    if (found == summary.splits.end()) found = summary.splits.insert(found, {facts.split, 0});
    found->second += facts.images;
  }
  return summary;
}

Result<PrepareSummary> PrepareSet(const Feed& feed, const Options& options, const Clock& clock,
                                  std::stop_token stop,
                                  const std::function<void(const Progress&)>& progress) {
  TRY_STATUS(CheckOptions(options));
  const Instant start = clock.Now();
  const Job job = MakeJob(feed, options);
  if (const auto finished = TRY(FindFinished(job))) {
    PrepareSummary summary = SummaryOf(*finished);
    summary.skipped = feed.not_taken;
    summary.labels = ReportLabels(feed);
    summary.source_stage = feed.stage;
    summary.was_finished = true;
    summary.begun_at = job.end - job.first;
    summary.wall_s = Seconds(clock.Now() - start);
    return summary;
  }
  const std::unique_ptr<Making> making = TRY(Making::Open(job, feed, options, clock, progress));
  const int64_t begun_at = making->next() - job.first, left = job.end - making->next();
  const int wanted = options.workers > 0 ? options.workers : UsableCpus();
  const int workers = static_cast<int>(std::clamp<int64_t>(left, 1, wanted));
  const Status made = Run(job, feed, options, workers, clock, stop, *making);
  if (!made) {
    // Where even this fails, the last checkpoint holds, and the first error is the one to tell.
    const Status ignored = making->Keep();
    return std::unexpected(made.error());
  }
  PrepareSummary summary = SummaryOf(TRY(making->Finish()));
  summary.skipped = feed.not_taken;
  summary.labels = ReportLabels(feed);
  summary.source_stage = feed.stage;
  summary.begun_at = begun_at;
  summary.made_again = making->made_again();
  summary.bytes_in = making->bytes_in();
  summary.times = making->times();
  summary.workers = workers;
  summary.wall_s = Seconds(clock.Now() - start);
  if (summary.wall_s > 0) summary.images_per_s = static_cast<double>(making->accepted()) / summary.wall_s;
  return summary;
}

}  // namespace weir::prepare
