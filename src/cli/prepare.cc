#include "prepare/prepare.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <stop_token>

#include "base/named_file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/prepare_flags.h"
#include "cli/verbs.h"
#include "dataset/objects.h"
#include "prepare/join.h"
#include "prepare/part.h"
#include "prepare/preview.h"
#include "prepare/sources.h"
#include "prepare/summary_text.h"
#include "prepare/variations.h"
#include "prepare/verify_folder.h"
#include "record/provenance.h"
#include "run/picture_judge.h"
#include "synth/pictures.h"

namespace weir::cli {
namespace {

prepare::Feed FeedOfMadePictures(int64_t count, Seed seed) {
  prepare::Feed feed{.count = count};
  for (int label = 0; label < synth::ClassCount(); ++label) feed.classes.push_back(synth::ClassName(label));
  feed.stage = "drawing";
  feed.get = [seed](int64_t index) -> prepare::FedPicture {
    auto picture = synth::DrawPicture(seed, index);
    if (!picture) {
      return {
          .source = fmt::format("made {}", index),
          .encoded = std::unexpected(image::Reject{image::RejectReason::kFailed, picture.error().message})};
    }
    return {.source = picture->name, .label = picture->label, .encoded = Bytes::Copy(picture->jpeg)};
  };
  feed.arguments.seed = seed.value();
  feed.name = synth::PictureName;
  feed.label = synth::PictureLabel;
  feed.describe = [seed](int64_t index) { return fmt::format("made {} of seed {}\n", index, seed.value()); };
  return feed;
}

Result<prepare::Options> OptionsOf(const PrepareFlags& w) {
  prepare::Options options{
      .folder = w.folder,
      .format = ChoiceOf(w.format, {dataset::SetFormat::kFiles, dataset::SetFormat::kTar,
                                    dataset::SetFormat::kTfrecord, dataset::SetFormat::kRaw}),
      .encoding = w.encoding == "png" ? prepare::Encoding::kPng : prepare::Encoding::kJpeg,
      .jpeg = {.quality = w.quality,
               .sampling = ChoiceOf(w.sampling,
                                    {image::Sampling::k444, image::Sampling::k422, image::Sampling::k420})},
      .decode = {.max_pixels = w.max_pixels, .tolerate_damage = w.tolerate_damage},
      .shrink = w.shrink,
      .sha256 = w.sha256,
      .shard_bytes = w.shard_bytes,
      .min_bytes = w.min_bytes,
      .reject_duplicates = w.no_duplicates,
      .replicate = w.replicate,
      .workers = w.workers};
  if (!w.recipe.empty()) {
    std::vector<prepare::Variation> recipes = TRY(prepare::ReadVariations(w.recipe));
    if (recipes.size() == 1) {
      options.geometry = recipes.front().geometry;
    } else {
      options.variations = std::move(recipes);
    }
  }
  if (!w.split.empty()) {
    options.split = TRY(prepare::ParseSplit(w.split));
    options.split_seed = static_cast<uint64_t>(w.seed);
  }
  if (!w.part.empty()) {
    options.part = TRY(prepare::ParsePart(w.part, [](const char* name) -> std::optional<std::string> {
      const char* value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    }));
  }
  return options;
}

// A progress line, as often as a person can read it.
class Teller {
 public:
  Teller(Console& console, const Clock& clock, std::string what)
      : console_(console), clock_(clock), what_(std::move(what)), begin_(clock.Now()), next_(begin_) {}

  void Tell(int64_t done, int64_t total, const std::function<std::string(double elapsed_s)>& extra) {
    const Instant now = clock_.Now();
    if (now < next_) return;
    next_ = now + 200ms;
    const double elapsed_s = Seconds(now - begin_);
    console_.Progress(elapsed_s, what_, done, total, extra(elapsed_s));
  }
  void Tell(const prepare::Progress& p) {
    Tell(p.done - p.begun_at, p.total - p.begun_at, [&p](double elapsed_s) {
      const double rate = elapsed_s > 0 ? static_cast<double>(p.bytes_in) / elapsed_s : 0;
      return fmt::format(", {}/s, {} rejected", Size(rate), Count(p.rejected));
    });
  }

 private:
  Console& console_;
  const Clock& clock_;
  const std::string what_;
  const Instant begin_;
  Instant next_;
};

Json ResultJson(const PrepareFlags& w, const prepare::PrepareSummary& summary, const std::string& folder) {
  results::PrepareResult result = prepare::MakeResult(summary, folder);
  if (w.make > 0 || w.sample > 0 || !w.split.empty()) result.seed = w.seed;
  result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  result.command = record::CommandLine(CommandLine());
  return result.ToJson();
}

// `folder` lies in w.folder, or is it. What is published goes to the same place below w.publish.
Result<int> Finish(const PrepareFlags& w, const Console& console, const prepare::PrepareSummary& summary,
                   const std::string& folder, const std::stop_token& stop) {
  std::string shown = folder;
  if (!w.publish.empty()) {
    shown = w.publish + folder.substr(w.folder.size());
    TRY_STATUS(dataset::ObjectReader({}).Publish(folder, shown, stop));
  }
  console.Text(prepare::SummaryText(summary, shown));
  if (!w.preview.empty())
    TRY_STATUS(prepare::WritePreview(folder, w.preview, {.seed = static_cast<uint64_t>(w.seed)}));
  TRY_STATUS(console.Json(ResultJson(w, summary, shown)));
  return w.strict && prepare::RejectedCount(summary) > 0 ? kJobFailed : kDone;
}

Result<int> Make(const PrepareFlags& w, Console& console, const Clock& clock, const std::stop_token& stop) {
  prepare::Options options = TRY(OptionsOf(w));
  std::unique_ptr<run::PictureJudge> judge;
  if (!w.recognise.empty()) {
    judge = TRY(run::PictureJudge::Open(
        {.model = w.recognise, .min_score = w.min_score, .decode = options.decode}, clock));
    options.make_judge = [&judge] { return judge->MakeJudge(); };
    options.judged_by = judge->identity();
  }
  std::unique_ptr<prepare::Sources> sources;
  prepare::Feed feed;
  if (w.make > 0) {
    feed = FeedOfMadePictures(w.make, Seed(static_cast<uint64_t>(w.seed)));
  } else {
    prepare::SourceOptions wanted{
        .paths = w.sources,
        .lists = {},
        .labels = w.labels,
        .max_file_bytes = static_cast<uint64_t>(w.max_file_bytes),
        .fetch = {.retries = w.fetch_retries, .timeout = FromSeconds(w.fetch_timeout_s), .stop = stop}};
    if (!w.list.empty()) wanted.lists.push_back(w.list);
    sources = TRY(prepare::Sources::Open(std::move(wanted)));
    feed = sources->MakeFeed();
  }
  if (w.sample > 0) {
    std::vector<int64_t> chosen = prepare::SampleOf(feed.count, w.sample, static_cast<uint64_t>(w.seed));
    feed = prepare::Pick(std::move(feed), std::move(chosen));
    feed.arguments.sample = w.sample;
    feed.arguments.seed = static_cast<uint64_t>(w.seed);
  }
  Teller teller(console, clock, "prepare");
  const auto summary =
      prepare::PrepareSet(feed, options, clock, stop, [&](const prepare::Progress& p) { teller.Tell(p); });
  console.EndProgress();
  if (!summary) return std::unexpected(summary.error());
  const std::string folder = options.part ? w.folder + "/" + prepare::PartFolder(*options.part) : w.folder;
  return Finish(w, console, *summary, folder, stop);
}

Result<int> Join(const PrepareFlags& w, Console& console, const Clock& clock, const std::stop_token& stop) {
  Teller teller(console, clock, "join");
  const auto summary = prepare::JoinParts({.parts = w.sources,
                                           .folder = w.folder,
                                           .stop = stop,
                                           .progress = [&](const prepare::Progress& p) { teller.Tell(p); }},
                                          clock);
  console.EndProgress();
  if (!summary) return std::unexpected(summary.error());
  return Finish(w, console, *summary, w.folder, stop);
}

Result<int> Verify(const PrepareFlags& w, Console& console, const Clock& clock, const std::stop_token& stop) {
  Teller teller(console, clock, "verify");
  const auto result =
      prepare::VerifyFolder(w.verify, {.stop = stop, .progress = [&](int64_t done, int64_t total) {
                                         teller.Tell(done, total, [](double) { return std::string(); });
                                       }});
  console.EndProgress();
  if (!result) return std::unexpected(result.error());
  console.Text(prepare::VerifyText(*result));
  TRY_STATUS(console.Json(result->ToJson()));
  return result->faults == 0 ? kDone : kJobFailed;
}

// Puts local folders in the place of URLs: copies of what is read, and a folder to make what is published.
Status Localise(PrepareFlags& w, const std::stop_token& stop) {
  const dataset::ObjectReader reader({});
  if (!w.verify.empty()) w.verify = TRY(reader.CopyOf(w.verify, stop));
  for (std::string& source : w.sources) {
    if (w.join) source = TRY(reader.CopyOf(source, stop));
  }
  if (!dataset::IsObjectUrl(w.folder)) return {};
  while (w.folder.ends_with('/')) w.folder.pop_back();
  TRY_STATUS(reader.CheckPublish(w.folder, stop));
  w.publish = w.folder;
  w.folder = TRY(dataset::StagingFolderOf(w.publish));
  return {};
}

Result<int> PrepareData(PrepareFlags w, const std::stop_token& stop) {
  TRY_STATUS(CheckPrepareFlags(w));
  TRY_STATUS(Localise(w, stop));
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  if (!LiesInside(w.preview, w.folder)) TRY_STATUS(CheckOutput("--preview", w.preview));
  const SteadyClock clock;
  if (!w.verify.empty()) return Verify(w, console, clock, stop);
  return w.join ? Join(w, console, clock, stop) : Make(w, console, clock, stop);
}

}  // namespace

int Prepare(const Arguments& arguments) {
  PrepareFlags wanted;
  if (const auto status = ParsePrepareFlags(arguments, wanted)) return *status;
  const Interrupt interrupt;
  const Result<int> status = PrepareData(wanted, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
