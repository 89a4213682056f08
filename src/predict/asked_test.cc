// Rows that flags ask for, on a predictor whose law is known.
#include "predict/asked.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "predict/job.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The networks' table also has what an ONNX file tells.
Result<Predictor> Fitted() {
  const std::string folder = testing::TempDir() + fmt::format("asked_test_{}", ::getpid());
  MadeSet set = MadeSet::Make();
  set.networks =
      "network,gflops,moved,params_m,depth,blocks\nsmall,2,50,11,18,8\nmiddle,8,90,25,50,16\n"
      "large,40,300,60,152,50\nwide,10,400,69,50,16\nalike,10,400,69,50,16\n";
  const std::string spec = TRY(set.WriteTo(folder));
  FitJob job =
      TRY(FitFromFiles({.spec = spec, .data_dir = folder}, {.fit = {.estimator = "physical", .threads = 2}}));
  return std::move(job.predictor);
}

Result<results::ModelFacts> NoModel(const std::string& path) {
  return Fail(ErrorCode::kNotFound, path + ": no model is read here");
}

class Asked : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto fitted = Fitted();
    ASSERT_TRUE(fitted.has_value()) << fitted.error().message;
    predictor_ = std::make_unique<Predictor>(*std::move(fitted));
  }
  static void TearDownTestSuite() { predictor_.reset(); }
  void SetUp() override { notes_.clear(); }
  Result<results::PredictAnswers> Ask(const AskedRows& asked) {
    return AnswerRows(asked, *predictor_, NoModel, notes_);
  }
  Result<results::PredictEngines> AskEngines(const AskedRows& asked) {
    return AnswerEngines(asked, *predictor_, NoModel, notes_);
  }
  std::string RefusalOf(const AskedRows& asked) {
    const auto message = [](const auto& done) { return done ? "nothing" : done.error().message; };
    return asked.as_engine ? message(AskEngines(asked)) : message(Ask(asked));
  }
  // Asks for a model of these facts.
  Result<results::PredictAnswers> AskFor(int64_t parameters, int64_t depth, int64_t modules) {
    notes_.clear();
    const auto facts_of = [&](const std::string&) -> Result<results::ModelFacts> {
      results::ModelFacts facts;
      facts.parameters = parameters;
      facts.depth = depth;
      facts.inner_modules = modules;
      return facts;
    };
    return AnswerRows({.gpus = {"gpu-a"}, .network = "mine.onnx", .batches = {8}}, *predictor_, facts_of,
                      notes_);
  }
  static std::unique_ptr<Predictor> predictor_;
  std::vector<std::string> notes_;
};
std::unique_ptr<Predictor> Asked::predictor_;

TEST_F(Asked, OneRowIsALineAndWhereItsTimeGoes) {
  const auto answered =
      Ask({.gpus = {"gpu-c"}, .set = {"precision=fp32"}, .network = "middle", .batches = {32}});
  ASSERT_TRUE(answered.has_value()) << answered.error().message;
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(answered->taken_as_unknown, IsEmpty());
  ASSERT_EQ(answered->answers.size(), 1U);
  const auto& answer = answered->answers.front();
  EXPECT_EQ(answer.regime, "inside");
  EXPECT_GT(answer.shares.at("compute"), 0.01);
  EXPECT_EQ(answer.row.at("gpu_count"), "1");
  EXPECT_NEAR(*answer.value / MadeSet::ItemsPerSecond("gpu-c", "middle", 32, 1), 1, 0.06);
}

TEST_F(Asked, SeveralCardsAndBatchesAreATableWithTheirPrices) {
  const auto answered = Ask({.gpus = {"gpu-a", "gpu-c"},
                             .prices = {"1", "2"},
                             .network = "small",
                             .batches = {8, 32},
                             .devices = 2,
                             .items = 1000});
  ASSERT_TRUE(answered.has_value()) << answered.error().message;
  ASSERT_EQ(answered->answers.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const auto& [row, regime, value, low, high, outside, shares, job] = answered->answers[i];
    EXPECT_EQ(row.at("gpu"), i < 2 ? "gpu-a" : "gpu-c");
    EXPECT_EQ(row.at("batch"), i % 2 == 0 ? "8" : "32");
    EXPECT_NEAR(*job->cost / job->hours, 2 * (i < 2 ? 1 : 2), 1e-9);
  }
  EXPECT_THAT(answered->taken_as_unknown, ElementsAre("precision"));
}

TEST_F(Asked, AFlagThatSaysNothingIsRefusedByItsName) {
  EXPECT_THAT(RefusalOf({}), HasSubstr("say --network"));
  EXPECT_THAT(RefusalOf({.network = "small"}), HasSubstr("say --gpu"));
  EXPECT_THAT(RefusalOf({.gpus = {"gpu-a"}, .network = "small"}), HasSubstr("say --batch: batch of the row"));
  EXPECT_THAT(RefusalOf({.gpus = {"gpu-"}, .network = "small"}), HasSubstr("gpu \"gpu-\" may be gpu-a"));
  EXPECT_THAT(RefusalOf({.gpus = {"gpu-a"}, .set = {"gpu=gpu-b"}, .network = "small"}),
              HasSubstr("--gpu and --set gpu say the same"));
  EXPECT_THAT(RefusalOf({.set = {"network=small"}, .network = "small"}),
              HasSubstr("--network and --set network say the same"));
  EXPECT_THAT(RefusalOf({.set = {"gpu_count=2"}, .network = "small", .devices = 2}),
              HasSubstr("--devices and --set gpu_count say the same"));
  EXPECT_THAT(RefusalOf({.set = {"batch=2"}, .network = "small", .batches = {2}}),
              HasSubstr("--batch and --set batch say the same"));
  EXPECT_THAT(RefusalOf({.network = "small", .nodes = 2}),
              HasSubstr("uses no column nodes: leave out --nodes"));
  EXPECT_THAT(
      RefusalOf({.gpus = {"gpu-a"}, .prices = {"1", "2"}, .network = "small", .batches = {8}, .items = 9}),
      HasSubstr("one for each of 1 --gpu, not 2"));
  EXPECT_THAT(
      RefusalOf({.gpus = {"gpu-a"}, .prices = {"-1"}, .network = "small", .batches = {8}, .items = 9}),
      HasSubstr("-1 is below 0"));
  EXPECT_THAT(RefusalOf({.gpus = {"gpu-a"}, .network = "mine.onnx"}), HasSubstr("no model is read here"));
}

TEST_F(Asked, AModelWithTheFactsOfAKnownNetworkIsAskedByItsName) {
  const auto known = AskFor(25'100'000, 50, 16);
  ASSERT_TRUE(known.has_value()) << known.error().message;
  EXPECT_EQ(known->answers[0].row.at("network"), "middle");
  EXPECT_THAT(notes_.front(), "mine.onnx has the facts of middle: asked as middle");
  ASSERT_TRUE(AskFor(69'000'000, 50, 16));
  EXPECT_THAT(notes_.front(), HasSubstr("wide and alike: asked as wide, --network NAME"));
  const auto other = AskFor(40'000'000, 50, 16);
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->answers[0].row.at("network"), "mine.onnx");
  EXPECT_EQ(other->answers[0].regime, "refused");
}

TEST_F(Asked, EnginesAreOfOneDeviceAndSeveralBatches) {
  const auto one = AskEngines({.gpus = {"gpu-a"}, .network = "small", .as_engine = true});
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_THAT(one->engines.front().engine,
              AllOf(testing::StartsWith("emulated:base="), testing::EndsWith("batch=64")));
  EXPECT_THAT(one->engines.front().outside, HasSubstr("batch 1 is"));
  const auto two =
      AskEngines({.gpus = {"gpu-a", "gpu-b"}, .network = "small", .batches = {8, 64}, .as_engine = true});
  ASSERT_TRUE(two.has_value()) << two.error().message;
  ASSERT_EQ(two->engines.size(), 2U);
  EXPECT_EQ(two->engines[1].hardware, "gpu-b");
  EXPECT_THAT(RefusalOf({.gpus = {"gpu-a"}, .set = {"batch=8"}, .network = "small", .as_engine = true}),
              HasSubstr("say --batch, not --set batch"));
}

TEST(CheckAsked, RefusesFlagsThatSayNothingTogether) {
  const auto refusal = [](const AskedRows& asked) {
    const Status status = CheckAsked(asked);
    return status ? "nothing" : status.error().message;
  };
  EXPECT_THAT(refusal({.epochs = 2}), HasSubstr("--epochs is of a job"));
  EXPECT_THAT(refusal({.prices = {"1"}}), HasSubstr("--price-per-hour is of a job"));
  EXPECT_THAT(refusal({.items = 5, .as_engine = true}), HasSubstr("leave out --items"));
  EXPECT_THAT(refusal({.batches = {0}}), HasSubstr("--batch: 0 is not at least 1"));
  EXPECT_THAT(refusal({.batches = {8, 8}, .as_engine = true}), HasSubstr("two different --batch"));
  EXPECT_EQ(refusal({.batches = {8}, .items = 5, .epochs = 2}), "nothing");
}

}  // namespace
}  // namespace weir::predict
