#include "prepare/prepare.h"

#include <fmt/format.h>

#include <stop_token>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "data/source.h"
#include "make/pictures.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct Wanted {
  std::vector<std::string> sources;
  std::string folder, recipe, format = "files", encoding = "jpeg", json;
  int64_t make = 0, replicate = 0, min_bytes = 0, max_pixels = 100'000'000, seed = 1;
  int workers = 0, quality = 90;
  bool tolerate_damage = false, strict = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("prepare", "Makes a prepared data set of pictures, or of made pictures in known classes.",
              "weir prepare --make 1000 -o made/pictures && weir prepare made/pictures --recipe "
              "made/resnet50/recipe.yaml --format raw -o made/raw");
  flags.Texts("SRC", w.sources, "files, folders (recursive) or prepared sets", false);
  flags.Required("-o,--output", w.folder, "the set's folder: absent or empty");
  flags.Integer64("--make", w.make, 0, 100'000'000,
                  "draw so many pictures in known classes instead of reading SRC");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "of the made pictures");
  flags.Text("--recipe", w.recipe, "a recipe whose geometry the pictures get; else they go in as they are");
  flags.Choice("--format", w.format, {"files", "raw"},
               "encoded files, or uint8 records of one size (needs --recipe)");
  flags.Choice("--encoding", w.encoding, {"jpeg", "png"}, "of files that got a geometry");
  flags.Integer("--quality", w.quality, 1, 100, "of JPEG files that got a geometry");
  flags.Integer("--workers", w.workers, 0, 4096, "threads that decode and encode; 0: one a core");
  flags.Integer64("--replicate", w.replicate, 0, 1'000'000'000, "real copies, up to so many pictures in all");
  flags.Integer64("--min-bytes", w.min_bytes, 0, INT64_MAX,
                  "reject smaller files (2052 finds the placeholders of photo sites)");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "a picture that declares more is rejected");
  flags.Switch("--tolerate-damage", w.tolerate_damage,
               "let damaged pictures through as far as they can be shown");
  flags.Switch("--strict", w.strict, "exit with 1 when any picture was rejected");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

prepare::Feed FeedOfMadePictures(int64_t count, Seed seed) {
  prepare::Feed feed{.count = count};
  for (int label = 0; label < make::ClassCount(); ++label) feed.classes.push_back(make::ClassName(label));
  feed.get = [seed](int64_t index) -> prepare::FedPicture {
    auto picture = make::DrawPicture(seed, index);
    if (!picture) {
      return {.source = fmt::format("made {}", index),
              .encoded = std::unexpected(data::Reject{data::RejectReason::kFailed, picture.error().message})};
    }
    return {.source = picture->name, .label = picture->label, .encoded = Bytes::Copy(picture->jpeg)};
  };
  return feed;
}

Json ResultJson(const Wanted& w, const prepare::PrepareSummary& summary) {
  Json json;
  json["folder"] = EscapeBytes(w.folder);
  json["format"] = w.format;
  json["images"] = summary.images;
  json["rejected"] = Json(summary.rejected);
  if (summary.rejected.empty()) json["rejected"] = Json::object();
  PutIfAny(json, "images_per_s", summary.images_per_s);
  json["wall_s"] = summary.wall_s;
  json["bytes_in"] = summary.bytes_in;
  json["bytes_out"] = summary.bytes_out;
  if (w.make > 0) json["seed"] = w.seed;
  json["provenance"] =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  json["command"] = record::CommandLine(CommandLine());
  return json;
}

Result<int> PrepareData(const Wanted& w, const std::stop_token& stop) {
  if (w.sources.empty() == (w.make == 0)) {
    return Fail(ErrorCode::kInvalidArgument, "prepare wants either SRC... or --make N");
  }
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  prepare::Options options{
      .folder = w.folder,
      .format = w.format == "raw" ? data::SetFormat::kRaw : data::SetFormat::kFiles,
      .encoding = w.encoding == "png" ? prepare::Encoding::kPng : prepare::Encoding::kJpeg,
      .jpeg = {.quality = w.quality},
      .decode = {.max_pixels = w.max_pixels, .tolerate_damage = w.tolerate_damage},
      .workers = w.workers,
      .replicate = w.replicate,
      .min_bytes = w.min_bytes};
  if (!w.recipe.empty()) options.geometry = TRY(data::ReadRecipe(w.recipe)).geometry;
  data::Listing listing;
  prepare::Feed feed;
  if (w.make > 0) {
    feed = FeedOfMadePictures(w.make, Seed(static_cast<uint64_t>(w.seed)));
  } else {
    listing = TRY(data::ListInputs(w.sources));
    feed = TRY(prepare::FeedFrom(listing));
  }
  const Instant begin = clock.Now();
  Instant next = begin;
  const auto summary = prepare::PrepareSet(feed, options, clock, stop, [&](const prepare::Progress& p) {
    if (clock.Now() < next) return;
    next = clock.Now() + 200ms;
    console.Progress(Seconds(clock.Now() - begin), "prepare", p.done, p.total, "");
  });
  console.EndProgress();
  if (!summary) return std::unexpected(summary.error());

  int64_t rejected = 0;
  std::string reasons;
  for (const auto& [reason, count] : summary->rejected) {
    rejected += count;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", Count(count), reason);
  }
  console.Text(
      fmt::format("{} pictures in {}{}, {}{} ({:.1f} s)\n", Count(summary->images), EscapeBytes(w.folder),
                  rejected > 0 ? fmt::format("; rejected: {}", reasons) : "",
                  Size(static_cast<double>(summary->bytes_out)),
                  summary->images_per_s ? fmt::format(", {} images/s", Short(*summary->images_per_s)) : "",
                  summary->wall_s));
  TRY_STATUS(console.Json(ResultJson(w, *summary)));
  return w.strict && rejected > 0 ? kJobFailed : kDone;
}

}  // namespace

int Prepare(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Interrupt interrupt;
  const Result<int> status = PrepareData(wanted, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
