#include "dataset/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "dataset/labels.h"

namespace weir::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kResNet = R"(# ResNet-50 v1.5 as torchvision prepares it
input: input
layout: NCHW
datatype: FP32
channels: RGB
resize: {short_side: 256, filter: bilinear}
crop: {width: 224, height: 224}
scale: 0.00392156862745098
mean: [0.485, 0.456, 0.406]
std: [0.229, 0.224, 0.225]
output: logits
softmax: true
labels: ../synset.txt
first_class: 0
orientation: exif
)";

std::string RefusalOf(std::string_view yaml) {
  const Result<Recipe> recipe = ParseRecipe(yaml, "");
  if (recipe) return "accepted";
  EXPECT_EQ(recipe.error().code, ErrorCode::kInvalidArgument);
  return recipe.error().message;
}

TEST(Recipe, ReadsEveryKey) {
  const Recipe recipe = ParseRecipe(kResNet, "models/recipes").value();
  EXPECT_EQ(recipe.input, "input");
  EXPECT_EQ(recipe.layout, Layout::kNchw);
  EXPECT_EQ(recipe.datatype, ElementType::kFp32);
  EXPECT_EQ(recipe.geometry, (Geometry{.short_side = 256, .crop = Size{224, 224}}));
  EXPECT_EQ(recipe.scale, 1 / 255.0);
  EXPECT_THAT(recipe.mean, ElementsAre(0.485, 0.456, 0.406));
  EXPECT_THAT(recipe.std, ElementsAre(0.229, 0.224, 0.225));
  EXPECT_EQ(recipe.output, "logits");
  EXPECT_TRUE(recipe.softmax);
  EXPECT_EQ(recipe.labels, "models/synset.txt");
  EXPECT_EQ(recipe.first_class, 0);
}

TEST(Recipe, ReadsASizeAndOtherOrders) {
  const Recipe recipe =
      ParseRecipe(
          "resize: {width: 320, height: 240}\nchannels: GRAY\nlayout: NHWC\ndatatype: UINT8\n"
          "orientation: ignore\nfirst_class: 1\nlabels: /data/labels.txt\n",
          "models")
          .value();
  EXPECT_EQ(recipe.geometry.resize, (Size{320, 240}));
  EXPECT_EQ(recipe.geometry.OutputSize(), (Size{320, 240}));
  EXPECT_EQ(recipe.geometry.channel_count(), 1);
  EXPECT_EQ(recipe.geometry.orientation, Orientation::kIgnore);
  EXPECT_EQ(recipe.layout, Layout::kNhwc);
  EXPECT_EQ(recipe.datatype, ElementType::kUint8);
  EXPECT_EQ(recipe.first_class, 1);
  EXPECT_EQ(recipe.labels, "/data/labels.txt");
}

TEST(Recipe, OneNumberStandsForEveryChannel) {
  EXPECT_THAT(ParseRecipe("mean: 127\nstd: [128]\n", "")->mean, ElementsAre(127, 127, 127));
  EXPECT_THAT(ParseRecipe("channels: GRAY\nmean: [127]\nstd: 128\n", "")->std, ElementsAre(128, 128, 128));
}

TEST(Recipe, RefusalsNameTheLineAndTheKey) {
  EXPECT_EQ(RefusalOf("layout: NCHW\nresize: {short_side: 0}\n"),
            "line 2: resize.short_side: \"0\" is not a whole number from 1 to 16384");
  EXPECT_THAT(RefusalOf("crop:\n  width: 3\n  hight: 4\n"), HasSubstr("line 3: crop.hight: no such key"));
  EXPECT_THAT(RefusalOf("size: 224\n"), HasSubstr("line 1: size: no such key"));
  EXPECT_THAT(RefusalOf("layout: nchw\n"), HasSubstr("\"nchw\" is none of NCHW, NHWC"));
  EXPECT_THAT(RefusalOf("layout: NCHW\nlayout: NHWC\n"), HasSubstr("line 2: layout: is there twice"));
  EXPECT_THAT(RefusalOf("resize: {short_side: 8, width: 8, height: 8}"),
              HasSubstr("either short_side, or width and height"));
  EXPECT_THAT(RefusalOf("resize: {width: 8}"), HasSubstr("both width and height"));
  EXPECT_THAT(RefusalOf("resize: {short_side: 256, filter: bicubic}"),
              HasSubstr("resize.filter: \"bicubic\" is none of bilinear"));
  EXPECT_THAT(RefusalOf("crop: {width: 224.5, height: 224}"), HasSubstr("\"224.5\" is not a whole number"));
  EXPECT_THAT(RefusalOf("crop: {width: 16385, height: 224}"), HasSubstr("from 1 to 16384"));
  EXPECT_THAT(RefusalOf("scale: 0"), HasSubstr("scale: may not be 0"));
  EXPECT_THAT(RefusalOf("std: [1, 0, 1]"), HasSubstr("std: may not be 0"));
  EXPECT_THAT(RefusalOf("mean: [1, nan, 1]"), HasSubstr("mean: \"nan\" is not a number from"));
  EXPECT_THAT(RefusalOf("mean: [1, 2]"), HasSubstr("mean: wants one number, or one per channel"));
  EXPECT_THAT(RefusalOf("mean: []"), HasSubstr("mean: wants one number"));
  EXPECT_THAT(RefusalOf("channels: GRAY\nmean: [1, 2, 3]"), HasSubstr("line 2: mean: wants one number"));
  EXPECT_THAT(RefusalOf("mean: [1, 2, 3, 4]"), HasSubstr("mean: wants one number per channel"));
  EXPECT_THAT(RefusalOf("datatype: UINT8\nscale: 2\n"),
              HasSubstr("line 2: scale: a UINT8 input takes the bytes"));
  EXPECT_THAT(RefusalOf("softmax: yes"), HasSubstr("\"yes\" is none of true, false"));
  EXPECT_THAT(RefusalOf("first_class: -1"), HasSubstr("\"-1\" is not a whole number from 0"));
  EXPECT_THAT(RefusalOf("input: [a]"), HasSubstr("input: wants one word"));
  EXPECT_THAT(RefusalOf("layout: [NCHW\n"), HasSubstr("not YAML"));
  EXPECT_THAT(RefusalOf(""), HasSubstr("wants keys and values"));
  EXPECT_THAT(RefusalOf("- a"), HasSubstr("wants keys and values"));
  EXPECT_THAT(RefusalOf(std::string(70000, '#')), HasSubstr("no recipe"));
  EXPECT_THAT(RefusalOf(std::string(5000, '[')), HasSubstr("not YAML"));
}

TEST(Recipe, ComesBackFromItsOwnText) {
  Recipe recipe = ParseRecipe(kResNet, "").value();
  recipe.input = "a \"quoted\" \\ name: # 写真\x01";
  const std::string text = FormatRecipe(recipe);
  const Recipe again = ParseRecipe(text, "").value();
  EXPECT_EQ(again.input, recipe.input);
  EXPECT_EQ(again.geometry, recipe.geometry);
  EXPECT_EQ(again.scale, recipe.scale);
  EXPECT_EQ(again.mean, recipe.mean);
  EXPECT_EQ(FormatRecipe(again), text);
}

TEST(Recipe, TheGeometryHashTellsGeometriesApartAndNothingElse) {
  const Recipe recipe = ParseRecipe(kResNet, "").value();
  const std::string hash = GeometryHash(recipe.geometry);
  EXPECT_EQ(hash, "3f6d713f29c60941");
  Recipe other = recipe;
  other.scale = 2;
  EXPECT_EQ(GeometryHash(other.geometry), hash);
  other.geometry.short_side = 255;
  EXPECT_NE(GeometryHash(other.geometry), hash);
  other = recipe;
  other.geometry.channels = Channels::kBgr;
  EXPECT_NE(GeometryHash(other.geometry), hash);
  other = recipe;
  other.geometry.crop.reset();
  EXPECT_NE(GeometryHash(other.geometry), hash);
}

TEST(Recipe, FilesNameThemselvesInRefusals) {
  const std::string folder = ::testing::TempDir() + "recipe_test";
  ASSERT_TRUE(MakeFolders(folder));
  ASSERT_TRUE(WriteFileWhole(folder + "/recipe.yaml", "labels: names.txt\n"));
  EXPECT_EQ(ReadRecipe(folder + "/recipe.yaml")->labels, folder + "/names.txt");
  ASSERT_TRUE(WriteFileWhole(folder + "/recipe.yaml", "layout: 3\n"));
  EXPECT_THAT(ReadRecipe(folder + "/recipe.yaml").error().message,
              HasSubstr(folder + "/recipe.yaml: line 1: layout"));
  EXPECT_EQ(ReadRecipe(folder + "/none.yaml").error().code, ErrorCode::kNotFound);
}

TEST(ReadLabels, TakesALineForAClass) {
  const std::string path = ::testing::TempDir() + "labels_test.txt";
  ASSERT_TRUE(WriteFileWhole(path, "tench\r\n\ngreat white shark, Carcharodon\nlast"));
  EXPECT_THAT(ReadLabels(path).value(), ElementsAre("tench", "", "great white shark, Carcharodon", "last"));
  EXPECT_FALSE(ReadLabels(path + ".none"));
}

TEST(ReadLabels, BoundsLabels) {
  EXPECT_EQ(ParseLabels(std::string(kMostLabels, '\n'))->size(), kMostLabels);
  EXPECT_THAT(ParseLabels(std::string(kMostLabels + 1, '\n')).error().message, HasSubstr("1048576 labels"));
  EXPECT_TRUE(ParseLabels("a\n" + std::string(kMostBytesOfALabel, 'x')).has_value());
  const auto long_one = ParseLabels("a\n" + std::string(kMostBytesOfALabel + 1, 'x'));
  EXPECT_EQ(long_one.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(long_one.error().message, HasSubstr("line 2"));
  EXPECT_THAT(ParseLabels(std::string(kMostLabelBytes + 1, 'x')).error().message, HasSubstr("32 MiB"));
}

}  // namespace
}  // namespace weir::dataset
