#include "prepare/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stop_token>

#include "base/file.h"
#include "cli/console.h"
#include "cli/prepare_flags.h"
#include "cli/verbs.h"
#include "dataset/objects.h"
#include "dataset/verify.h"
#include "prepare/join.h"
#include "prepare/part.h"
#include "prepare/preview.h"
#include "prepare/sources.h"
#include "prepare/summary_text.h"
#include "record/provenance.h"
#include "results/check_results.h"
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

// "a.yaml,b.yaml"; one file where there is one of the whole name.
Result<std::vector<prepare::Variation>> ReadRecipes(const std::string& text) {
  std::vector<std::string> paths;
  const bool whole = ::access(text.c_str(), F_OK) == 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = whole ? text.size() : std::min(text.find(',', begin), text.size());
    paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<prepare::Variation> recipes;
  for (const std::string& path : paths) {
    const dataset::Recipe recipe = TRY(dataset::ReadRecipe(path));
    const std::filesystem::path file(path);
    // A model's recipe is "recipe.yaml" in its folder, which then gives the name.
    const bool in_model = file.stem() == "recipe" && file.has_parent_path();
    recipes.push_back({in_model ? file.parent_path().filename() : file.stem(), recipe.geometry});
  }
  return recipes;
}

dataset::SetFormat FormatOf(const std::string& name) {
  if (name == "tar") return dataset::SetFormat::kTar;
  if (name == "tfrecord") return dataset::SetFormat::kTfrecord;
  return name == "raw" ? dataset::SetFormat::kRaw : dataset::SetFormat::kFiles;
}

image::Sampling SamplingOf(const std::string& name) {
  if (name == "444") return image::Sampling::k444;
  return name == "422" ? image::Sampling::k422 : image::Sampling::k420;
}

Result<prepare::Options> OptionsOf(const PrepareFlags& w) {
  prepare::Options options{
      .folder = w.folder,
      .format = FormatOf(w.format),
      .encoding = w.encoding == "png" ? prepare::Encoding::kPng : prepare::Encoding::kJpeg,
      .jpeg = {.quality = w.quality, .sampling = SamplingOf(w.sampling)},
      .decode = {.max_pixels = w.max_pixels, .tolerate_damage = w.tolerate_damage},
      .shrink = w.shrink,
      .sha256 = w.sha256,
      .shard_bytes = w.shard_bytes,
      .min_bytes = w.min_bytes,
      .reject_duplicates = w.no_duplicates,
      .replicate = w.replicate,
      .workers = w.workers};
  if (!w.recipe.empty()) {
    std::vector<prepare::Variation> recipes = TRY(ReadRecipes(w.recipe));
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

// Folders above a set: a part's, a variation's, a share's.
constexpr int kFoldersAboveASet = 3;

// Returns the folders that hold a set of their own, in byte order: the folder itself, or those that parts,
// variations and shares have in it, `depth` levels down at most.
std::vector<std::string> SetFolders(const std::string& folder, int depth = kFoldersAboveASet) {
  if (dataset::PreparedSet::IsSet(folder)) return {folder};
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (depth == 0 || !entry.is_directory(error)) continue;
    std::ranges::move(SetFolders(entry.path(), depth - 1), std::back_inserter(folders));
  }
  std::ranges::sort(folders);
  return folders;
}

// In a folder that the work makes.
bool IsBelow(const std::string& path, const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored),
                              above = std::filesystem::weakly_canonical(folder, ignored);
  const std::filesystem::path relative = whole.lexically_relative(above);
  return !relative.empty() && relative != "." && *relative.begin() != "..";
}

// Writes the preview of the set with the most pictures, the first of several: variations show the same ones.
Status WritePreview(const PrepareFlags& w, const std::string& folder) {
  std::string largest;
  int64_t most = -1;
  for (const std::string& set : SetFolders(folder)) {
    const int64_t images = TRY(dataset::ReadSetFacts(set)).images;
    if (images > most) largest = set;
    most = std::max(most, images);
  }
  if (largest.empty()) return {};
  const std::string sheet = TRY(prepare::MakePreview(largest, {.seed = static_cast<uint64_t>(w.seed)}));
  return WriteFileWhole(w.preview, sheet);
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
  if (!w.preview.empty()) TRY_STATUS(WritePreview(w, folder));
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
  const std::vector<std::string> folders = SetFolders(w.verify);
  if (folders.empty()) {
    return Fail(ErrorCode::kNotFound, fmt::format("{}: no finished set is there (no set.json)", w.verify));
  }
  Teller teller(console, clock, "verify");
  results::VerifyResult result;
  for (const std::string& folder : folders) {
    const auto report =
        dataset::VerifySet(folder, {.stop = stop, .progress = [&](int64_t done, int64_t total) {
                                      teller.Tell(done, total, [](double) { return std::string(); });
                                    }});
    console.EndProgress();
    if (!report) return std::unexpected(report.error());
    result.faults += report->faults;
    results::VerifyResult::Set& set = result.sets.emplace_back();
    set = {.folder = EscapeBytes(folder),
           .images = report->images,
           .bytes = report->bytes,
           .faults = report->faults,
           .examples = {}};
    for (const std::string& example : report->examples) {
      console.Text(fmt::format("{}: {}\n", EscapeBytes(folder), EscapeBytes(example)));
      set.examples.push_back(EscapeBytes(example));
    }
    console.Text(fmt::format("{}: {} pictures, {}: {}\n", EscapeBytes(folder), Count(report->images),
                             Size(static_cast<double>(report->bytes)),
                             report->faults == 0 ? "as the manifest says" : Count(report->faults, "fault")));
  }
  TRY_STATUS(console.Json(result.ToJson()));
  return result.faults == 0 ? kDone : kJobFailed;
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
  if (!IsBelow(w.preview, w.folder)) TRY_STATUS(CheckOutput("--preview", w.preview));
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
