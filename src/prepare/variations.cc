#include "prepare/variations.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "dataset/recipe.h"

namespace weir::prepare {

Result<std::vector<Variation>> ReadVariations(const std::string& text) {
  std::vector<std::string> paths;
  const bool whole = ::access(text.c_str(), F_OK) == 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = whole ? text.size() : std::min(text.find(',', begin), text.size());
    paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<Variation> recipes;
  for (const std::string& path : paths) {
    const dataset::Recipe recipe = TRY(dataset::ReadRecipe(path));
    const std::filesystem::path file(path);
    // A model's recipe is "recipe.yaml" in its folder, which then gives the name.
    const bool in_model = file.stem() == "recipe" && file.has_parent_path();
    recipes.push_back({in_model ? file.parent_path().filename() : file.stem(), recipe.geometry});
  }
  return recipes;
}

}  // namespace weir::prepare
