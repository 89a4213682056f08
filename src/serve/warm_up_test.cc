#include "serve/warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "infer/testing/answers.h"

namespace weir::serve {
namespace {

namespace fs = std::filesystem;
using infer::DType;
using infer::testing::Floats;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::Model ModelOf(infer::Shape shape, int max_batch, DType dtype = DType::kFp32) {
  model::Model model{.name = "m", .inputs = {{.name = "x", .dtype = dtype, .shape = std::move(shape)}}};
  model.serving_max_batch = max_batch;
  return model;
}

void Add(model::Model& model, int batch, model::WarmUpInput input) {
  model.config.warm_ups.push_back(
      {.name = "w", .batch_size = batch, .count = 2, .inputs = {{"x", std::move(input)}}});
}

std::string Refusal(const model::Model& model) {
  const auto samples = MakeWarmUpSamples(model);
  EXPECT_FALSE(samples.has_value());
  return samples ? "" : samples.error().message;
}

TEST(WarmUp, IsOneRowOfZerosWhereNobodySaysOtherwise) {
  const auto samples = MakeWarmUpSamples(ModelOf({-1, 3}, 8));
  ASSERT_TRUE(samples.has_value());
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ(samples->at(0).inputs[0].shape, (infer::Shape{1, 3}));
  EXPECT_THAT(Floats(samples->at(0).inputs[0]), ElementsAre(0, 0, 0));
}

TEST(WarmUp, IsNothingWhereTheShapesAreNotKnown) {
  EXPECT_TRUE(MakeWarmUpSamples(ModelOf({-1, -1}, 8))->empty());
}

TEST(WarmUp, IsNothingForTextsWhichOnlyTheModelKnows) {
  EXPECT_TRUE(MakeWarmUpSamples(ModelOf({-1, 3}, 8, DType::kBytes))->empty());
}

TEST(WarmUp, RepeatsARowToTheBatchAsOftenAsItIsAskedTo) {
  model::Model model = ModelOf({-1, -1}, 8);
  Add(model, 3, {.dims = {2}, .random = true});
  const auto samples = MakeWarmUpSamples(model);
  ASSERT_TRUE(samples.has_value());
  const infer::Tensor& input = samples->at(0).inputs[0];
  EXPECT_EQ(samples->at(0).count, 2);
  EXPECT_EQ(input.shape, (infer::Shape{3, 2}));
  const std::vector<float> values = Floats(input);
  EXPECT_THAT(values, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(1))));
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 2), std::vector(values.begin() + 4, values.end()));
  EXPECT_NE(values[0], values[1]);
}

TEST(WarmUp, IsTheSameOnEveryStart) {
  model::Model model = ModelOf({-1, 4}, 8);
  Add(model, 1, {.dims = {4}, .random = true});
  EXPECT_EQ(Floats(MakeWarmUpSamples(model)->at(0).inputs[0]),
            Floats(MakeWarmUpSamples(model)->at(0).inputs[0]));
}

TEST(WarmUp, ReadsFilesOfTheModel) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("warm-up-" + std::to_string(::getpid()));
  fs::create_directories(folder / "warmup");
  std::ofstream(folder / "warmup/x") << "abcd";
  model::Model model = ModelOf({-1, 4}, 8, DType::kUint8);
  model.folder = fs::canonical(folder).string();
  Add(model, 2, {.dtype = DType::kUint8, .dims = {4}, .file = "x"});
  EXPECT_EQ(MakeWarmUpSamples(model)->at(0).inputs[0].data.text(), "abcdabcd");
  model.config.warm_ups[0].inputs["x"].dims = {5};
  EXPECT_THAT(Refusal(model), HasSubstr("4 bytes"));
  model.config.warm_ups[0].inputs["x"].file = "../config.pbtxt/../../secret";
  EXPECT_FALSE(MakeWarmUpSamples(model).has_value());
  fs::remove_all(folder);
}

TEST(WarmUp, ReshapesAsRequestsAre) {
  model::Model model = ModelOf({-1, 2, 2}, 8);
  Add(model, 1, {.dims = {4}});
  EXPECT_EQ(MakeWarmUpSamples(model)->at(0).inputs[0].shape, (infer::Shape{1, 2, 2}));
  model.config.warm_ups[0].inputs["x"].dims = {5};
  EXPECT_THAT(Refusal(model), HasSubstr("do not fit"));
}

TEST(WarmUp, NamesWhatDoesNotBelongToTheModel) {
  model::Model model = ModelOf({-1, 4}, 8);
  Add(model, 1, {.dtype = DType::kInt32, .dims = {4}});
  EXPECT_THAT(Refusal(model), HasSubstr("model_warmup \"w\": input \"x\": is INT32"));
  model.config.warm_ups[0].inputs = {{"z", {.dims = {4}}}};
  EXPECT_THAT(Refusal(model), HasSubstr("nothing for input \"x\""));
}

}  // namespace
}  // namespace weir::serve
