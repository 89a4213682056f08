#include "cli/prepare_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/flags.h"

namespace weir::cli {
namespace {

void AddSourceFlags(Flags& flags, PrepareFlags& w) {
  flags.Texts("SRC", w.sources,
              "files, folders (recursive), prepared sets, tar archives, or URLs of s3, http and https; the "
              "parts, with --join",
              false);
  flags.Text("--list", w.list,
             "file of names (- for standard input): one path or URL a line, with a tab and a label if there "
             "is one; or paths that each end with a zero byte (find -print0)");
  flags.Text("--labels", w.labels,
             "source of labels: \"folders\" (the first folder of each picture), or a CSV file of name,label");
  flags.Integer64("--make", w.make, 0, 100'000'000,
                  "number of pictures to draw, in known classes, instead of reading SRC");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX,
                  "seed of made pictures, of --sample, --split and --preview");
  flags.Integer("--fetch-retries", w.fetch_retries, 0, 100, "retries of a URL that cannot be reached");
  flags.Number("--fetch-timeout", w.fetch_timeout_s, 0.001, 86400, "seconds for one try of a URL");
}

void AddSelectionFlags(Flags& flags, PrepareFlags& w) {
  flags.Integer64("--min-bytes", w.min_bytes, 0, INT64_MAX,
                  "smallest file that is accepted, in bytes (2052 rejects the placeholders of photo sites)");
  flags.Integer64("--max-file-bytes", w.max_file_bytes, 1, int64_t{1} << 40,
                  "largest file that is accepted, in bytes");
  flags.Integer64("--max-pixels", w.max_pixels, 1, int64_t{1} << 40,
                  "largest picture that is accepted, in pixels");
  flags.Text("--recognise", w.recognise, "model (file or folder) that must recognise each picture");
  flags.Number("--min-score", w.min_score, -1e30, 1e30, "smallest score of the best class, for --recognise");
  flags.Switch("--no-duplicates", w.no_duplicates, "reject files with the bytes of an earlier one");
  flags.Integer64("--sample", w.sample, 0, INT64_MAX, "number of sources to take, chosen by --seed (0: all)");
  flags.Integer64("--replicate", w.replicate, 0, 1'000'000'000,
                  "number of pictures in all, reached by real copies (0: no copies)");
  flags.Switch("--tolerate-damage", w.tolerate_damage,
               "accept damaged pictures as far as they can be decoded");
}

void AddResultFlags(Flags& flags, PrepareFlags& w) {
  flags.Text("-o,--output", w.folder,
             "folder of the set: absent, empty, or begun by the same command; or s3://BUCKET/PREFIX");
  flags.Text("--recipe", w.recipe,
             "recipe whose geometry the pictures get (default: files are copied byte for byte). Several, "
             "with commas, make one set each, in folders by their names, from one decode");
  flags.Text("--split", w.split,
             "shares that become separate sets, in folders of --output: 0.8,0.1,0.1 (train, val, test) or "
             "NAME=SHARE,NAME=SHARE; each label is split in the same shares, by names and --seed");
  flags.Choice("--format", w.format, {"files", "tar", "tfrecord", "raw"},
               "form of the set: encoded files, WebDataset tar, tf.Example records, or uint8 records of one "
               "size (with --recipe)");
  flags.Choice("--encoding", w.encoding, {"jpeg", "png"}, "encoding of resized pictures");
  flags.Integer("--quality", w.quality, 1, 100, "quality of JPEGs");
  flags.Choice("--sampling", w.sampling, {"444", "422", "420"}, "chroma subsampling of JPEGs");
  flags.Integer64("--shard-bytes", w.shard_bytes, 1, int64_t{1} << 40,
                  "largest shard in bytes, unless it holds a single picture");
  flags.Switch("--sha256", w.sha256, "add SHA-256 of sources and results to the manifest");
  flags.Switch("--shrink", w.shrink,
               "decode JPEGs of more than twice the size at a fraction: faster, but not bit-exact");
  flags.Text("--preview", w.preview,
             "file for a contact sheet (JPEG): 64 results, and the rejects by reason");
}

using FlagNames = std::initializer_list<std::string_view>;

// The first flag that was given and is in `names`; with kNotIn the first that is not.
enum class Membership { kIn, kNotIn };
std::optional<std::string> FirstGiven(const PrepareFlags& w, Membership wanted, FlagNames names) {
  for (const std::string& name : w.given) {
    const bool in = std::ranges::find(names, name) != names.end();
    if (in == (wanted == Membership::kIn)) return name;
  }
  return std::nullopt;
}

// `flag`, where there is one, is one that the way of working does not look at.
Status Refuse(std::string_view why, const std::optional<std::string>& flag) {
  if (!flag) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}, so {} is not applicable beside it: leave it out", why, *flag));
}

// A set within its own source would be one of the pictures' folders when its command is run again.
Status CheckPlace(const PrepareFlags& w) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(w.folder, error);
  for (const std::string& source : w.sources) {
    if (!std::filesystem::is_directory(source, error)) continue;
    const std::filesystem::path folder = std::filesystem::canonical(source, error);
    if (std::ranges::mismatch(folder, place).in1 != folder.end()) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("-o {} lies within its own source {}: choose a folder beside it", w.folder, source));
  }
  return {};
}

}  // namespace

std::optional<int> ParsePrepareFlags(const Arguments& arguments, PrepareFlags& w) {
  Flags flags("prepare",
              "Makes a prepared data set from pictures, or from made pictures in known classes. After an "
              "interruption the same command continues.",
              "weir prepare --make 1000 -o made/pictures && weir prepare made/pictures --recipe "
              "made/resnet50/recipe.yaml --format raw -o made/raw && weir prepare --verify made/raw");
  AddSourceFlags(flags, w);
  AddResultFlags(flags, w);
  AddSelectionFlags(flags, w);
  flags.Integer("--workers", w.workers, 0, 4096, "threads that decode and encode (0: one for each core)");
  flags.Text("--part", w.part,
             "part I/N of the work, made in the folder part-I-of-N of --output; auto or auto/N: as the Slurm "
             "array or the Kubernetes Indexed Job says");
  flags.Switch("--join", w.join,
               "join finished parts; SRC names their folders, or the folder that holds them");
  flags.Text("--verify", w.verify, "finished set to check against its manifest; nothing is made");
  flags.Switch("--strict", w.strict, "exit with status 1 if any picture was rejected");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  const std::optional<int> status = flags.Parse(arguments);
  w.given = flags.Given();
  return status;
}

Status CheckPrepareFlags(const PrepareFlags& w) {
  const auto invalid = [](std::string words) -> Status {
    return Fail(ErrorCode::kInvalidArgument, std::move(words));
  };
  using enum Membership;
  if (!w.verify.empty())
    return Refuse("--verify DIR makes nothing", FirstGiven(w, kNotIn, {"--verify", "--json"}));
  if (w.folder.empty()) return invalid("prepare wants -o DIR: where the set shall lie");
  if (w.join) {
    if (w.sources.empty()) return invalid("--join wants the parts' folders as SRC");
    return Refuse(
        "--join makes of the parts what they were begun as",
        FirstGiven(w, kNotIn, {"--join", "SRC", "--output", "--preview", "--seed", "--strict", "--json"}));
  }
  const bool reads = !w.sources.empty() || !w.list.empty();
  if (reads == (w.make > 0)) return invalid("prepare wants either SRC... (or --list FILE) or --make N");
  if (w.make > 0) {
    TRY_STATUS(
        Refuse("--make draws its pictures, in classes of their own",
               FirstGiven(w, kIn, {"--labels", "--fetch-retries", "--fetch-timeout", "--max-file-bytes"})));
  }
  if (w.recipe.empty() && w.shrink) return invalid("--shrink is for pictures that get a size: give --recipe");
  if (w.recipe.empty() && reads)
    TRY_STATUS(Refuse("without --recipe files go in byte for byte",
                      FirstGiven(w, kIn, {"--encoding", "--quality", "--sampling"})));
  if (w.recognise.empty())
    TRY_STATUS(Refuse("no model judges without --recognise", FirstGiven(w, kIn, {"--min-score"})));
  return CheckPlace(w);
}

}  // namespace weir::cli
