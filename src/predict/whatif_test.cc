// Splits of people, on a predictor whose law is known.
#include "predict/whatif.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "predict/job.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Predictor> Fitted() {
  const std::string folder = testing::TempDir() + fmt::format("whatif_test_{}", ::getpid());
  const std::string spec = TRY(MadeSet::Make().WriteTo(folder));
  FitJob job =
      TRY(FitFromFiles({.spec = spec, .data_dir = folder}, {.fit = {.estimator = "physical", .threads = 2}}));
  return std::move(job.predictor);
}

TEST(Settings, AreColumnsAndValues) {
  const auto settings = ParseSettings({"a=1", "b=x=y", "c="});
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(*settings, (Settings{{"a", "1"}, {"b", "x=y"}, {"c", ""}}));
  EXPECT_THAT(ParseSettings({"a"}).error().message, HasSubstr("write column=value"));
  EXPECT_THAT(ParseSettings({"=1"}).error().message, HasSubstr("write column=value"));
  EXPECT_THAT(ParseSettings({"a=1", "a=2"}).error().message, HasSubstr("a is set twice"));
}

TEST(MakeTable, HasTheColumnsOfAllRowsAndAnIdForEach) {
  const Spec spec = *ParseSpec(MadeSet::Make().spec);
  const auto table = MakeTable(spec, {{{"gpu", "a,\"b\""}}, {{"batch", "8"}, {"row_id", "mine"}}});
  ASSERT_TRUE(table.has_value()) << table.error().message;
  ASSERT_EQ(table->rows(), 2);
  EXPECT_EQ(table->Cell(0, table->Column("gpu")), "a,\"b\"");
  EXPECT_EQ(table->Cell(0, table->Column("row_id")), "1");
  EXPECT_EQ(table->Cell(1, table->Column("row_id")), "mine");
  EXPECT_EQ(table->Cell(1, table->Column("gpu")), "");
  EXPECT_FALSE(MakeTable(spec, {{{"gpu", std::string("a\0b", 3)}}}).has_value());
}

TEST(KeyMeant, IsTheOnlyOneThatBeginsSo) {
  const auto table = Table::WithKey(*ParseCsv("gpu\nH100-SXM5-80GB\nH100-PCIe\nT4\nT4G\n"), "gpu");
  EXPECT_EQ(KeyMeant(*table, "h100-sxm", "gpu"), "H100-SXM5-80GB");
  EXPECT_EQ(KeyMeant(*table, "T4", "gpu"), "T4");
  EXPECT_EQ(KeyMeant(*table, "B200", "gpu"), "B200");
  EXPECT_THAT(KeyMeant(*table, "h100", "gpu").error().message,
              HasSubstr("gpu \"h100\" may be H100-PCIe, H100-SXM5-80GB"));
}

TEST(NetworksAlike, HaveTheSameFacts) {
  const Spec spec = *ParseSpec(MadeSet::Make().spec);
  const Table table = *Table::WithKey(*ParseCsv("network,family,params_m,gmacs,depth\nsmall,a,10,2,18\n"
                                                "large,a,25.56,4.1,50\nvgg,b,138.36,15.5,16\n"
                                                "vgg_bn,b,138.37,15.5,16\n"),
                                      "network");
  const auto alike = [&](const Table& networks, Settings facts) {
    return NetworksAlike(spec, networks, facts);
  };
  EXPECT_THAT(alike(table, {{"params_m", "25.53"}, {"gmacs", "4.09"}, {"depth", "50"}}),
              ElementsAre("large"));
  EXPECT_THAT(alike(table, {{"params_m", "138.4"}, {"gmacs", "15.5"}, {"depth", "16"}}),
              ElementsAre("vgg", "vgg_bn"));
  EXPECT_THAT(alike(table, {{"params_m", "25.53"}, {"gmacs", "4.4"}, {"depth", "50"}}), IsEmpty());
  EXPECT_THAT(alike(table, {{"params_m", "25.53"}, {"gmacs", "4.09"}}), IsEmpty());
  EXPECT_THAT(alike({}, {{"params_m", "25.53"}, {"gmacs", "4.09"}, {"depth", "50"}}), IsEmpty());
}

TEST(TimeOfJob, IsStepsTimesTheTimeOfAStep) {
  const Spec spec = *ParseSpec(MadeSet::Make().spec);  // a rate; the time is of an item on a device
  const Settings row = {{"batch", "10"}, {"gpu_count", "4"}};
  const Prediction prediction{.regime = Regime::kInside, .value = 100, .low = 80, .high = 125, .time_ms = 36};
  // 1,001 items are 26 steps of 40; 2 epochs; a step takes 360 ms.
  const auto answer = TimeOfJob(spec, row, prediction, {.items = 1001, .epochs = 2, .price_per_hour = 3});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_NEAR(answer->hours, 52 * 360 / 3.6e6, 1e-12);
  EXPECT_NEAR(answer->low_hours, answer->hours * 100 / 125, 1e-12);
  EXPECT_NEAR(answer->high_hours, answer->hours * 100 / 80, 1e-12);
  EXPECT_NEAR(*answer->cost, answer->hours * 4 * 3, 1e-12);
  EXPECT_NEAR(*answer->low_cost, answer->low_hours * 4 * 3, 1e-12);
  EXPECT_NEAR(*answer->high_cost, answer->high_hours * 4 * 3, 1e-12);

  EXPECT_FALSE(TimeOfJob(spec, row, {.outside = "why"}, {.items = 1}).has_value());
  EXPECT_FALSE(TimeOfJob(spec, row, prediction, {.items = 0}).has_value());
  EXPECT_THAT(TimeOfJob(spec, {}, prediction, {.items = 1}).error().message, HasSubstr("batch above 0"));
}

TEST(TimeOfJob, IsANumberOrRefused) {
  const Spec spec = *ParseSpec(MadeSet::Make().spec);
  const Prediction prediction{.regime = Regime::kInside, .value = 100, .low = 80, .high = 125, .time_ms = 36};
  const auto refusal = [&](const Settings& row, const Job& job) {
    const auto answer = TimeOfJob(spec, row, prediction, job);
    return answer ? "nothing" : answer.error().message;
  };
  const Settings row = {{"batch", "10"}, {"gpu_count", "4"}};
  EXPECT_EQ(refusal(row, {.items = 1e300}), "nothing");
  EXPECT_THAT(refusal(row, {.items = 1e300, .epochs = 1e9}), HasSubstr("1e+300 items, 1e+09 epochs"));
  EXPECT_THAT(refusal(row, {.items = 1e300, .price_per_hour = 1e20}), HasSubstr("is no number"));
  // More devices than a number holds would take no step at all.
  EXPECT_THAT(refusal({{"batch", "1e308"}, {"gpu_count", "1e6"}}, {.items = 9}), HasSubstr("is no number"));
}

TEST(TimeOfJob, OfAStepIsNotTimesTheBatch) {
  Spec spec = *ParseSpec(MadeSet::Make().spec);
  spec.time_is_of_item = false;
  spec.target_kind = TargetKind::kTime;
  const Prediction prediction{.regime = Regime::kInside, .value = 50, .low = 40, .high = 60, .time_ms = 50};
  const auto answer = TimeOfJob(spec, {{"batch", "10"}}, prediction, {.items = 72'000});
  ASSERT_TRUE(answer.has_value());
  EXPECT_NEAR(answer->hours, 0.1, 1e-12);
  EXPECT_NEAR(answer->low_hours, 0.08, 1e-12);
  EXPECT_NEAR(answer->high_hours, 0.12, 1e-12);
  EXPECT_FALSE(answer->cost.has_value());
}

TEST(AsEngine, IsTheLineThroughTheTimesOfBatches) {
  const auto predictor = Fitted();
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  const Settings row = {{"gpu", "gpu-c"}, {"network", "large"}};
  const auto engine = AsEngine(*predictor, row, {8, 32, 64});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  // The law: 5 ms a step, and the work and bytes of an item.
  const double item = 1000 / MadeSet::ItemsPerSecond("gpu-c", "large", 1e9, 1);
  EXPECT_NEAR(engine->base_ms, 5, 2);
  EXPECT_NEAR(engine->per_item_ms / item, 1, 0.05);
  EXPECT_LT(engine->greatest_error, 0.05);
  EXPECT_EQ(engine->batches_outside, 0);
  EXPECT_EQ(engine->engine, fmt::format("emulated:base={:.6f}ms,per_item={:.6f}ms,batch=64", engine->base_ms,
                                        engine->per_item_ms));
  // The ends of the intervals lie on both sides, in every batch.
  const auto time = [](const auto& line, int batch) { return line.base_ms + line.per_item_ms * batch; };
  for (const int batch : {8, 32, 64}) {
    EXPECT_LT(time(engine->fast, batch), time(*engine, batch));
    EXPECT_GT(time(engine->slow, batch), time(*engine, batch));
  }
  EXPECT_EQ(engine->slow.engine, fmt::format("emulated:base={:.6f}ms,per_item={:.6f}ms,batch=64",
                                             engine->slow.base_ms, engine->slow.per_item_ms));

  const auto beyond = AsEngine(*predictor, row, {8, 640, 6400});
  ASSERT_TRUE(beyond.has_value());
  EXPECT_EQ(beyond->batches_outside, 2);
  EXPECT_THAT(beyond->outside, HasSubstr("batch 640 is 10 times beyond"));
  for (const std::vector<int>& few : std::vector<std::vector<int>>{{}, {32}, {32, 32}})
    EXPECT_THAT(AsEngine(*predictor, row, few).error().message, HasSubstr("two different ones at least"));

  Settings several = row;
  several["gpu_count"] = "1.0";
  EXPECT_EQ(AsEngine(*predictor, several, {8, 32, 64})->engine, engine->engine);
  for (const char* count : {"4", "many", ""}) {
    several["gpu_count"] = count;
    EXPECT_THAT(AsEngine(*predictor, several, {8, 32}).error().message,
                HasSubstr(fmt::format("an engine is of one device: gpu_count is {}", count)));
  }

  EXPECT_THAT(
      AsEngine(*predictor, {{"gpu", "gpu-z"}, {"network", "large"}}, {8, 32}).error().message,
      HasSubstr(
          "batch 8: gpu \"gpu-z\" is not in the hardware table (is it gpu-a?); add it to hardware.csv"));

  EXPECT_THAT(UnknownColumns(*predictor, row), ElementsAre("batch", "gpu_count", "precision"));
  EXPECT_TRUE(CheckSettings(predictor->spec(), row).has_value());
  EXPECT_THAT(CheckSettings(predictor->spec(), {{"precison", "fp32"}}).error().message,
              HasSubstr("no column \"precison\"; it uses bandwidth, batch"));
}

}  // namespace
}  // namespace weir::predict
