#include "trial/dataset_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "dataset/set.h"
#include "dataset/source.h"
#include "launch/process/command.h"

namespace weir::trial {
namespace {

constexpr Duration kLongest = 4h;  // of preparing a set

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

std::string DatasetCache::Wish::Name(const dataset::Recipe* recipe) const {
  std::string name = path == DataPath::kShards  ? "shards"
                     : path == DataPath::kFiles ? "files"
                                                : "files-at-model-size";
  if (path != DataPath::kFiles) name += "-" + dataset::GeometryHash(recipe->geometry);
  if (images) name += fmt::format("-first-{}", *images);
  if (replication > 1) name += fmt::format("-times-{}", replication);
  return name;
}

Result<DataSet> DatasetCache::Get(const Setting& setting, const dataset::Recipe* recipe) {
  if (options_.source.empty()) return Invalid("the study names no data");
  Wish wish{.path = setting.data_path, .images = setting.images, .replication = setting.replication};
  // Loaded before the clock starts: what is decoded then is nobody's time.
  if (wish.path == DataPath::kMemory) wish.path = DataPath::kFilesAtModelSize;
  if (wish.path != DataPath::kFiles && recipe == nullptr)
    return Invalid(
        "data at the model's size want a model with a recipe: give it one, or leave data_path at files");
  const std::string name = wish.Name(recipe);
  if (const auto found = sets_.find(name); found != sets_.end()) return found->second;
  DataSet set;
  if (wish.path == DataPath::kFiles && !wish.images && wish.replication == 1) {
    const dataset::Listing listing = TRY(dataset::ListInputs({options_.source}));
    set = {.path = options_.source, .pictures = std::ssize(listing.inputs)};
  } else {
    set = TRY_CONTEXT(Make(wish, recipe, options_.folder + "/" + name), "the data set " + name);
  }
  if (set.pictures == 0) return Invalid(fmt::format("there is no picture in {}", options_.source));
  sets_[name] = set;
  return set;
}

Result<std::string> DatasetCache::LinkFirst(int64_t images) {
  const dataset::Listing listing = TRY(dataset::ListInputs({options_.source}));
  if (std::ssize(listing.inputs) < images)
    return Invalid(fmt::format("{} pictures are wanted, and {} has {}: give more, or ask for fewer", images,
                               options_.source, listing.inputs.size()));
  const std::string folder = fmt::format("{}/links-{}", options_.folder, images);
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  TRY_STATUS(MakeFolders(folder));
  for (int64_t i = 0; i < images; ++i) {
    const dataset::Input& input = listing.inputs[static_cast<size_t>(i)];
    if (input.record >= 0)
      return Invalid(
          fmt::format("{} has records and no files: give the pictures it was made of", options_.source));
    const std::filesystem::path target = std::filesystem::absolute(input.name, error);
    const std::string link = fmt::format("{}/{:09}{}", folder, i, target.extension().string());
    std::filesystem::create_symlink(target, link, error);
    if (error) return FailErrno(link, error.value());
  }
  return folder;
}

Result<DataSet> DatasetCache::Make(const Wish& wish, const dataset::Recipe* recipe,
                                   const std::string& folder) {
  const std::string set_file = folder + "/set.json";
  std::error_code error;
  if (!std::filesystem::exists(set_file, error)) {
    std::filesystem::remove_all(folder, error);  // an earlier run was killed while it made it
    TRY_STATUS(MakeFolders(options_.folder));
    const std::string source = wish.images ? TRY(LinkFirst(*wish.images)) : options_.source;
    std::vector<std::string> words{options_.program, "prepare", source, "-o", folder, "--json", "-"};
    if (wish.path != DataPath::kFiles) {
      const std::string file = folder + ".recipe.yaml";
      TRY_STATUS(WriteFileWhole(file, dataset::FormatRecipe(*recipe)));
      words.insert(words.end(),
                   {"--recipe", file, "--format", wish.path == DataPath::kShards ? "raw" : "files"});
    }
    if (wish.replication > 1) {
      const int64_t once =
          wish.images ? *wish.images : std::ssize(TRY(dataset::ListInputs({options_.source})).inputs);
      words.insert(words.end(), {"--replicate", fmt::format("{}", once * wish.replication)});
    }
    const auto made = launch::RunWell({.arguments = words, .timeout = kLongest}, clock_);
    if (wish.images)
      std::filesystem::remove_all(fmt::format("{}/links-{}", options_.folder, *wish.images), error);
    if (!made) return std::unexpected(made.error());
  }
  return DataSet{.path = folder, .pictures = TRY(dataset::ReadSetFacts(folder)).images};
}

}  // namespace weir::trial
