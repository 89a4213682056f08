// Recipes: any text is a recipe or a refusal, and what was accepted comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "dataset/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  const Result<dataset::Recipe> recipe = dataset::ParseRecipe(yaml, "");
  if (!recipe) return 0;
  const std::string text = dataset::FormatRecipe(*recipe);
  const Result<dataset::Recipe> again = dataset::ParseRecipe(text, "");
  CHECK(again);
  CHECK(dataset::FormatRecipe(*again) == text);
  CHECK(dataset::GeometryHash(again->geometry) == dataset::GeometryHash(recipe->geometry));
  return 0;
}
