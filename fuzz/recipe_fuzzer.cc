// Recipes: any text is a recipe or a refusal, and what was accepted comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  const Result<data::Recipe> recipe = data::ParseRecipe(yaml, "");
  if (!recipe) return 0;
  const std::string text = data::FormatRecipe(*recipe);
  const Result<data::Recipe> again = data::ParseRecipe(text, "");
  CHECK(again);
  CHECK(data::FormatRecipe(*again) == text);
  CHECK(data::GeometryHash(again->geometry) == data::GeometryHash(recipe->geometry));
  return 0;
}
