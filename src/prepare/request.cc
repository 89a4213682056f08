#include "prepare/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "dataset/objects.h"
#include "prepare/variations.h"

namespace weir::prepare {
namespace {

using FlagNames = std::initializer_list<std::string_view>;

// The first flag that was given and is in `names`; with kNotIn the first that is not.
enum class Membership { kIn, kNotIn };
std::optional<std::string> FirstGiven(const PrepareRequest& request, Membership wanted, FlagNames names) {
  for (const std::string& name : request.given) {
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
Status CheckPlace(const PrepareRequest& request) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(request.options.folder, error);
  for (const std::string& source : request.sources.paths) {
    if (!std::filesystem::is_directory(source, error)) continue;
    const std::filesystem::path folder = std::filesystem::canonical(source, error);
    if (std::ranges::mismatch(folder, place).in1 != folder.end()) continue;
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("-o {} lies within its own source {}: choose a folder beside it",
                            request.options.folder, source));
  }
  return {};
}

}  // namespace

Status CheckRequest(const PrepareRequest& request) {
  const auto invalid = [](std::string words) -> Status {
    return Fail(ErrorCode::kInvalidArgument, std::move(words));
  };
  using enum Membership;
  if (!request.verify.empty())
    return Refuse("--verify DIR makes nothing", FirstGiven(request, kNotIn, {"--verify", "--json"}));
  if (request.options.folder.empty()) return invalid("prepare wants -o DIR: where the set shall lie");
  if (request.join) {
    if (request.sources.paths.empty()) return invalid("--join wants the parts' folders as SRC");
    return Refuse("--join makes of the parts what they were begun as",
                  FirstGiven(request, kNotIn,
                             {"--join", "SRC", "--output", "--preview", "--seed", "--strict", "--json"}));
  }
  const bool reads = !request.sources.paths.empty() || !request.list.empty();
  if (reads == (request.make > 0)) return invalid("prepare wants either SRC... (or --list FILE) or --make N");
  if (request.make > 0) {
    TRY_STATUS(Refuse(
        "--make draws its pictures, in classes of their own",
        FirstGiven(request, kIn, {"--labels", "--fetch-retries", "--fetch-timeout", "--max-file-bytes"})));
  }
  if (request.recipe.empty() && request.options.shrink)
    return invalid("--shrink is for pictures that get a size: give --recipe");
  if (request.recipe.empty() && reads)
    TRY_STATUS(Refuse("without --recipe files go in byte for byte",
                      FirstGiven(request, kIn, {"--encoding", "--quality", "--sampling"})));
  if (request.recognise.empty())
    TRY_STATUS(Refuse("no model judges without --recognise", FirstGiven(request, kIn, {"--min-score"})));
  return CheckPlace(request);
}

Status Localise(PrepareRequest& request, const std::stop_token& stop) {
  const dataset::ObjectReader reader({});
  if (dataset::IsObjectUrl(request.verify)) {
    request.verify_name = request.verify;
    while (request.verify_name.ends_with('/')) request.verify_name.pop_back();
    request.verify = TRY(reader.CopyOf(request.verify, stop));
  }
  for (std::string& source : request.sources.paths) {
    if (request.join) source = TRY(reader.CopyOf(source, stop));
  }
  if (!dataset::IsObjectUrl(request.options.folder)) return {};
  while (request.options.folder.ends_with('/')) request.options.folder.pop_back();
  TRY_STATUS(reader.CheckPublish(request.options.folder, stop));
  request.publish = request.options.folder;
  request.options.folder = TRY(dataset::StagingFolderOf(request.publish));
  return {};
}

Status CompleteRequest(PrepareRequest& request) {
  if (!request.list.empty()) request.sources.lists.push_back(request.list);
  request.options.split_seed = static_cast<uint64_t>(request.seed);
  if (request.recipe.empty()) return {};
  std::vector<Variation> recipes = TRY(ReadVariations(request.recipe));
  if (recipes.size() == 1) {
    request.options.geometry = recipes.front().geometry;
  } else {
    request.options.variations = std::move(recipes);
  }
  return {};
}

}  // namespace weir::prepare
