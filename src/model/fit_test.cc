#include "model/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::model {
namespace {

using infer::DType;
using ::testing::HasSubstr;

Tensors Classifier(infer::Shape shape = {-1, 3, 224, 224}, DType dtype = DType::kFp32) {
  return {.inputs = {{"input", dtype, std::move(shape)}}, .outputs = {{"logits", DType::kFp32, {-1, 1000}}}};
}

dataset::Recipe Recipe224() {
  dataset::Recipe recipe;
  recipe.geometry.short_side = 256;
  recipe.geometry.crop = dataset::Size{224, 224};
  return recipe;
}

std::string Misfit(const dataset::Recipe& recipe, const Tensors& tensors) {
  const Status fits = CheckFits(recipe, tensors);
  EXPECT_FALSE(fits.has_value());
  return fits ? "" : fits.error().message;
}

Config Configured(int max_batch, infer::Shape input, DType dtype = DType::kFp32) {
  Config config;
  config.max_batch = max_batch;
  config.inputs = {{.info = {"input", dtype, std::move(input)}}};
  return config;
}

std::string Contradiction(const Tensors& file, const Config& config) {
  const auto narrowed = Narrow(file, config);
  EXPECT_FALSE(narrowed.has_value());
  return narrowed ? "" : narrowed.error().message;
}

TEST(Fit, TakesARecipeThatMakesWhatTheModelTakes) {
  EXPECT_TRUE(CheckFits(Recipe224(), Classifier()).has_value());
  EXPECT_TRUE(CheckFits(Recipe224(), Classifier({-1, -1, -1, -1})).has_value());
  dataset::Recipe bytes = Recipe224();
  bytes.layout = dataset::Layout::kNhwc;
  bytes.datatype = dataset::ElementType::kUint8;
  EXPECT_TRUE(CheckFits(bytes, Classifier({-1, 224, 224, 3}, DType::kUint8)).has_value());
}

TEST(Fit, RefusesARecipeOfAnotherTypeLayoutSizeOrColour) {
  EXPECT_THAT(Misfit(Recipe224(), Classifier({-1, 128, 128, 3}, DType::kUint8)),
              HasSubstr("makes FP32, but input \"input\" takes UINT8"));
  EXPECT_THAT(Misfit(Recipe224(), Classifier({-1, 224, 224, 3})), HasSubstr("3 channels as NCHW"));
  EXPECT_THAT(Misfit(Recipe224(), Classifier({-1, 3, 128, 128})), HasSubstr("224x224"));
  EXPECT_THAT(Misfit(Recipe224(), Classifier({-1, 1, 224, 224})), HasSubstr("3 channels"));
  EXPECT_THAT(Misfit(Recipe224(), Classifier({-1, 1000})), HasSubstr("four dimensions"));
  dataset::Recipe open = Recipe224();
  open.geometry.crop.reset();
  EXPECT_THAT(Misfit(open, Classifier()), HasSubstr("add a crop"));
}

TEST(Fit, RefusesARecipeThatNamesWhatIsNotThere) {
  dataset::Recipe recipe = Recipe224();
  recipe.input = "data";
  EXPECT_THAT(Misfit(recipe, Classifier()),
              HasSubstr("input \"data\" is not in the model, which has: input"));
  recipe = Recipe224();
  recipe.output = "probabilities";
  EXPECT_THAT(Misfit(recipe, Classifier()), HasSubstr("logits"));
  Tensors two = Classifier();
  two.outputs.push_back({"boxes", DType::kFp32, {-1, 4}});
  EXPECT_THAT(Misfit(Recipe224(), two), HasSubstr("names no output"));
}

TEST(Fit, NarrowsTheFileByTheConfiguration) {
  const auto narrowed = Narrow(Classifier({-1, 3, -1, -1}), Configured(8, {-1, 3, 224, 224}));
  ASSERT_TRUE(narrowed.has_value()) << narrowed.error().message;
  EXPECT_EQ(narrowed->inputs[0].shape, (infer::Shape{-1, 3, 224, 224}));
  EXPECT_EQ(narrowed->outputs[0].name, "logits") << "outputs that the configuration does not list stay";
}

TEST(Fit, RefusesAConfigurationThatContradictsTheFile) {
  EXPECT_THAT(Contradiction(Classifier(), Configured(8, {-1, 3, 128, 128})),
              HasSubstr("[-1,3,128,128] there and [-1,3,224,224]"));
  EXPECT_THAT(Contradiction(Classifier(), Configured(8, {-1, 3, 224, 224}, DType::kUint8)),
              HasSubstr("UINT8 there and FP32"));
  EXPECT_THAT(Contradiction(Classifier(), Configured(0, {3, 224, 224})), HasSubstr("[3,224,224] there"));
  EXPECT_THAT(Contradiction(Classifier({1, 3, 224, 224}), Configured(8, {-1, 3, 224, 224})),
              HasSubstr("max_batch_size is 8"));
  Config other = Configured(8, {-1, 3, 224, 224});
  other.inputs[0].info.name = "data";
  EXPECT_THAT(Contradiction(Classifier(), other),
              HasSubstr("input \"data\" is not in the model file, which has: input"));
}

TEST(Fit, RefusesAMaxBatchSizeOnAFixedFirstDimensionWhateverIsListed) {
  Config config;
  config.max_batch = 8;
  EXPECT_THAT(Contradiction(Classifier({1, 3, 224, 224}), config),
              HasSubstr("input \"input\" has a fixed first dimension of 1"));
  Tensors output = Classifier();
  output.outputs[0].shape = {1, 1000};
  EXPECT_THAT(Contradiction(output, config), HasSubstr("output \"logits\" has a fixed first dimension of 1"));
  EXPECT_THAT(Contradiction(Classifier({}), config), HasSubstr("no dimension for the rows"));
  EXPECT_THAT(Contradiction({.outputs = {{"y", DType::kFp32, {-1, 4}}}}, config), HasSubstr("no inputs"));
  EXPECT_TRUE(Narrow(Classifier(), config).has_value());
  config.max_batch = 1;
  EXPECT_TRUE(Narrow(Classifier({1, 3, 224, 224}), config).has_value()) << "as many as it takes";
  config.max_batch = 0;
  EXPECT_TRUE(Narrow(Classifier({1, 3, 224, 224}), config).has_value());
}

Config Output(infer::Shape shape) {
  Config config;
  config.outputs = {{.info = {"logits", DType::kFp32, std::move(shape)}}};
  return config;
}

TEST(Fit, TakesTheConfigurationsShapeWhereTheFileTellsNone) {
  Tensors file = Classifier();
  file.outputs[0].shape = {-1};
  file.outputs[0].any_rank = true;
  EXPECT_TRUE(Narrow(file, {})->outputs[0].any_rank);
  EXPECT_TRUE(Narrow(file, Output({-1}))->outputs[0].any_rank) << "as a server tells it";
  const auto narrowed = Narrow(file, Output({-1, 3}));
  ASSERT_TRUE(narrowed) << narrowed.error().message;
  EXPECT_EQ(narrowed->outputs[0], (infer::TensorInfo{"logits", DType::kFp32, {-1, 3}}));
}

TEST(Fit, TakesASingleNumberWithOneDimension) {
  Tensors file = Classifier();
  file.outputs[0].shape = {};
  EXPECT_EQ(Narrow(file, Output({1}))->outputs[0].shape, infer::Shape{});
  EXPECT_EQ(Narrow(file, Output({}))->outputs[0].shape, infer::Shape{});
  EXPECT_THAT(Contradiction(file, Output({2})), HasSubstr("[2] there and [] in the model file"));
  EXPECT_THAT(Contradiction(file, Output({-1})), HasSubstr("[-1] there and [] in the model file"));
  EXPECT_THAT(Contradiction(Classifier(), Output({1})), HasSubstr("[1] there and [-1,1000]"));
}

TEST(Fit, TakesAnInputThatTheFileHasAValueForWhereItIsListed) {
  Tensors file = Classifier();
  file.filled = {{"scale", DType::kFp32, {3}}};
  EXPECT_EQ(Narrow(file, Configured(0, {-1, 3, 224, 224}))->inputs.size(), 1u);
  Config config = Configured(0, {-1, 3, 224, 224});
  config.inputs.push_back({.info = {"scale", DType::kFp32, {3}}, .optional = true});
  const auto narrowed = Narrow(file, config);
  ASSERT_TRUE(narrowed) << narrowed.error().message;
  EXPECT_TRUE(narrowed->inputs[1].optional);
  EXPECT_TRUE(CheckFits(Recipe224(), *narrowed).has_value()) << "pictures fill the other input";
  config.inputs[1].optional = false;
  EXPECT_FALSE(Narrow(file, config)->inputs[1].optional);
  config.inputs[0].optional = true;
  EXPECT_THAT(Contradiction(file, config), HasSubstr("the model file has no value for it"));
}

TEST(Fit, NamesTheTypeOfAnOutputThatCannotBeSent) {
  Tensors file = Classifier();
  file.left_out = {{"logits2", "SEQUENCE"}};
  EXPECT_EQ(Narrow(file, {})->left_out.size(), 1u);
  Config config = Output({-1, 1000});
  config.outputs[0].info.name = "logits2";
  EXPECT_THAT(Contradiction(file, config), HasSubstr("is of type SEQUENCE"));
}

}  // namespace
}  // namespace weir::model
