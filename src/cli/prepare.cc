#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "cli/flags.h"
#include "cli/run_verb.h"
#include "prepare/part.h"
#include "prepare/session.h"
#include "prepare/split.h"
#include "run/picture_judge.h"
#include "synth/pictures.h"

namespace weir::cli {
namespace {

struct Wanted {
  prepare::PrepareRequest request;
  bool strict = false;
  std::string json;
};

Result<dataset::Part> ReadPart(const std::string& text) {
  return prepare::ParsePart(text, [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

void AddSourceFlags(Flags& flags, prepare::PrepareRequest& r) {
  flags.Texts("SRC", r.sources.paths,
              "files, folders (recursive), prepared sets, tar archives, or URLs of s3, http and https; the "
              "parts, with --join",
              false);
  flags.Text("--list", r.list,
             "file of names (- for standard input): one path or URL a line, with a tab and a label if there "
             "is one; or paths that each end with a zero byte (find -print0)");
  flags.Text("--labels", r.sources.labels,
             "source of labels: \"folders\" (the first folder of each picture), or a CSV file of name,label");
  flags.Integer64("--make", r.make, 0, 100'000'000,
                  "number of pictures to draw, in known classes, instead of reading SRC");
  flags.Integer64("--seed", r.seed, 0, INT64_MAX,
                  "seed of made pictures, of --sample, --split and --preview");
  flags.Integer("--fetch-retries", r.sources.fetch.retries, 0, 100,
                "retries of a URL that cannot be reached");
  flags.Seconds("--fetch-timeout", r.sources.fetch.timeout, 0.001, 86400, "seconds for one try of a URL");
}

void AddSelectionFlags(Flags& flags, prepare::PrepareRequest& r) {
  flags.Integer64("--min-bytes", r.options.min_bytes, 0, INT64_MAX,
                  "smallest file that is accepted, in bytes (2052 rejects the placeholders of photo sites)");
  flags.Integer64("--max-file-bytes", r.sources.max_file_bytes, 1, int64_t{1} << 40,
                  "largest file that is accepted, in bytes");
  flags.Integer64("--max-pixels", r.options.decode.max_pixels, 1, int64_t{1} << 40,
                  "largest picture that is accepted, in pixels");
  flags.Text("--recognise", r.recognise, "model (file or folder) that must recognise each picture");
  flags.Number("--min-score", r.min_score, -1e30, 1e30, "smallest score of the best class, for --recognise");
  flags.Switch("--no-duplicates", r.options.reject_duplicates,
               "reject files with the bytes of an earlier one");
  flags.Integer64("--sample", r.sample, 0, INT64_MAX, "number of sources to take, chosen by --seed (0: all)");
  flags.Integer64("--replicate", r.options.replicate, 0, 1'000'000'000,
                  "number of pictures in all, reached by real copies (0: no copies)");
  flags.Switch("--tolerate-damage", r.options.decode.tolerate_damage,
               "accept damaged pictures as far as they can be decoded");
}

void AddResultFlags(Flags& flags, prepare::PrepareRequest& r) {
  flags.Text("-o,--output", r.options.folder,
             "folder of the set: absent, empty, or begun by the same command; or s3://BUCKET/PREFIX");
  flags.Text("--recipe", r.recipe,
             "recipe whose geometry the pictures get (default: files are copied byte for byte). Several, "
             "with commas, make one set each, in folders by their names, from one decode");
  flags.Parsed("--split", r.options.split, prepare::ParseSplit,
               "shares that become separate sets, in folders of --output: 0.8,0.1,0.1 (train, val, test) or "
               "NAME=SHARE,NAME=SHARE; each label is split in the same shares, by names and --seed");
  flags.OneOf("--format", r.options.format, dataset::kSetFormats,
              "form of the set: encoded files, WebDataset tar, tf.Example records, or uint8 records of one "
              "size (with --recipe)");
  flags.OneOf("--encoding", r.options.encoding,
              {{"jpeg", prepare::Encoding::kJpeg}, {"png", prepare::Encoding::kPng}},
              "encoding of resized pictures");
  flags.Integer("--quality", r.options.jpeg.quality, 1, 100, "quality of JPEGs");
  flags.OneOf("--sampling", r.options.jpeg.sampling,
              {image::Sampling::k444, image::Sampling::k422, image::Sampling::k420},
              "chroma subsampling of JPEGs");
  flags.Integer64("--shard-bytes", r.options.shard_bytes, 1, int64_t{1} << 40,
                  "largest shard in bytes, unless it holds a single picture");
  flags.Switch("--sha256", r.options.sha256, "add SHA-256 of sources and results to the manifest");
  flags.Switch("--shrink", r.options.shrink,
               "decode JPEGs of more than twice the size at a fraction: faster, but not bit-exact");
  flags.Text("--preview", r.preview,
             "file for a contact sheet (JPEG): 64 results, and the rejects by reason");
}

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  prepare::PrepareRequest& r = w.request;
  Flags flags("prepare",
              "Makes a prepared data set from pictures, or from made pictures in known classes. After an "
              "interruption the same command continues.",
              "weir prepare --make 1000 -o made/pictures && weir prepare made/pictures --recipe "
              "made/resnet50/recipe.yaml --format raw -o made/raw && weir prepare --verify made/raw");
  AddSourceFlags(flags, r);
  AddResultFlags(flags, r);
  AddSelectionFlags(flags, r);
  flags.Integer("--workers", r.options.workers, 0, 4096,
                "threads that decode and encode (0: one for each core)");
  flags.Parsed(
      "--part", r.options.part, ReadPart,
      "part I/N of the work, made in the folder part-I-of-N of --output; auto or auto/N: as the Slurm "
      "array or the Kubernetes Indexed Job says");
  flags.Switch("--join", r.join,
               "join finished parts; SRC names their folders, or the folder that holds them");
  flags.Text("--verify", r.verify, "finished set to check against its manifest; nothing is made");
  flags.Switch("--strict", w.strict,
               "exit with status 1 if any picture was rejected, or anything in the sources was not taken");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  const std::optional<int> status = flags.Parse(arguments);
  r.given = flags.Given();
  return status;
}

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

Result<int> PrepareWith(const Wanted& w, const std::stop_token& stop) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  std::unique_ptr<run::PictureJudge> judge;
  const prepare::SessionHooks hooks{
      .progress = [&](const std::string& what, double elapsed_s, int64_t done, int64_t total,
                      const std::string& extra) { console.Progress(elapsed_s, what, done, total, extra); },
      .progress_ended = [&] { console.EndProgress(); },
      .made_feed = FeedOfMadePictures,
      .add_judge = [&](const prepare::PrepareRequest& request, prepare::Options& options) -> Status {
        judge = TRY(run::PictureJudge::Open(
            {.model = request.recognise, .min_score = request.min_score, .decode = options.decode}, clock));
        options.make_judge = [&judge] { return judge->MakeJudge(); };
        options.judged_by = judge->identity();
        return {};
      }};
  prepare::SessionEnd end = TRY(prepare::Prepare(w.request, hooks, clock, stop));
  console.Text(end.text);
  if (auto* made = std::get_if<results::PrepareResult>(&end.result)) AddProvenance(*made, w.request.seed);
  TRY_STATUS(console.Json(std::visit([](const auto& result) { return result.ToJson(); }, end.result)));
  const bool checks = std::holds_alternative<results::VerifyResult>(end.result);
  const bool failed = end.nothing || (!end.clean && (checks || w.strict));
  return failed ? kJobFailed : kDone;
}

}  // namespace

int Prepare(const Arguments& arguments) { return RunVerb<Wanted>(arguments, ParseFlags, PrepareWith); }

}  // namespace weir::cli
