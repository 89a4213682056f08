// From files to a predictor, and what is said of it.
#include "predict/job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <map>

#include "base/file.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// A folder with the made set in it, changed by the test where it wants.
class Job : public testing::Test {
 protected:
  std::string Folder() const {
    return testing::TempDir() + fmt::format("job_test_{}_{}", ::getpid(), test_info_->name());
  }
  Result<FitJob> Fit(FitJobOptions options) {
    const std::string spec = TRY(set_.WriteTo(Folder()));
    options.fit.threads = 2;
    return FitFromFiles({.spec = spec, .data_dir = Folder()}, options);
  }
  Result<Checked> Check() {
    return ReadAndCheck({.spec = TRY(set_.WriteTo(Folder())), .data_dir = Folder()}, 1, 2);
  }
  // The rows that a finding of this kind names.
  static std::vector<std::string> Found(const std::vector<Finding>& findings, std::string_view fault) {
    std::vector<std::string> ids;
    for (const Finding& finding : findings) {
      if (finding.fault == fault) ids.insert(ids.end(), finding.rows.begin(), finding.rows.end());
    }
    return ids;
  }

  const testing::TestInfo* test_info_ = testing::UnitTest::GetInstance()->current_test_info();
  MadeSet set_ = MadeSet::Make();
};

TEST_F(Job, FitsFilesAndTellsHowWell) {
  const auto job = Fit({.fit = {.estimator = "physical"}, .learning_curve = true});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->result.rows, 216);
  EXPECT_EQ(job->predictor.rows(), 216);
  EXPECT_THAT(job->result.findings, testing::IsEmpty());
  ASSERT_EQ(job->predictor.splits().size(), 4U);
  EXPECT_EQ(job->predictor.splits().front().score.rows, 216);

  const Json json = job->result.ToJson();
  const Json& inside = json["splits"][0];
  EXPECT_LT(inside["mean_percent"].get<double>(), 5);
  EXPECT_EQ(inside["by_hardware"].size(), 6U);
  EXPECT_EQ(inside["by_network"].size(), 4U);
  EXPECT_EQ(inside["by_devices"].size(), 3U);
  EXPECT_EQ(inside["profile"].size(), 12U);
  EXPECT_EQ(inside["worst"].size(), 15U);
  // 162 rows teach at most; an eighth of them is too few.
  ASSERT_EQ(json["learning_curve"].size(), 3U);
  EXPECT_EQ(json["learning_curve"].back()["fitted"], 162);
  EXPECT_EQ(json["learning_curve"].back()["answered_percent"], 100);
}

TEST_F(Job, TellsBadRowsApartAndFitsTheOthers) {
  set_.rows += "copy,gpu-a,small,8,1,fp32," + fmt::format("{:.6g}\n", 1.0);
  set_.rows += "copy,gpu-a,small,8,1,fp32,1\n";  // the same id and the same cells
  set_.rows += "nogpu,gpu-z,small,8,1,fp32,100\n";
  set_.rows += "nan,gpu-a,small,8,1,fp32,nan\n";
  set_.rows += "zero,gpu-a,small,8,1,fp32,0\n";
  set_.rows +=
      fmt::format("milli,gpu-a,wide,32,1,fp32,{}\n", 1000 * MadeSet::ItemsPerSecond("gpu-a", "wide", 32, 1));
  const auto checked = Check();
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_THAT(Found(checked->findings, Fault::kDuplicate), ElementsAre("copy"));
  EXPECT_THAT(Found(checked->findings, Fault::kUnusable), ElementsAre("nogpu", "zero"));
  EXPECT_THAT(Found(checked->findings, Fault::kNotANumber), ElementsAre("nan"));
  EXPECT_THAT(Found(checked->findings, Fault::kUnit), Contains("milli"));
  EXPECT_EQ(checked->result.unusable, 3);
  // The first of the two rows "copy" stays until its time is held against its peers.
  EXPECT_EQ(checked->result.rows, 222);
  EXPECT_EQ(std::ssize(checked->rows) + checked->result.left_out + checked->result.unusable, 222);
  EXPECT_EQ(checked->result.findings.size(), checked->findings.size());
}

TEST_F(Job, TellsOfTwoRowsOfOneId) {
  set_.rows += "r1,gpu-a,small,8,1,fp32,100\n";
  const auto checked = Check();
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_THAT(Found(checked->findings, Fault::kSameId), ElementsAre("r1"));
}

// Both ways of what a model's sums can hold, and a count that is none.
TEST_F(Job, ATimeThatCannotBeIsNotLearned) {
  set_.rows += "fast,gpu-a,small,8,1,fp32,1e307\nslow,gpu-a,small,8,1,fp32,1e-307\n";
  set_.rows += "half,gpu-a,small,8,1.5,fp32,100\n";
  const auto checked = Check();
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_THAT(Found(checked->findings, Fault::kUnusable), ElementsAre("fast", "slow", "half"));
  EXPECT_THAT(checked->result.findings.front().what,
              HasSubstr("items_per_s is \"1e307\", which is 1e-304 ms, no possible time"));
}

TEST_F(Job, SaysTheFirstReasonWhereNoRowIsLeft) {
  set_.rows =
      "row_id,gpu,network,batch,gpu_count,precision,items_per_s\na,gpu-z,small,8,1,fp32,5\n"
      "b,gpu-a,small,8,1,fp32,0\n";
  const auto checked = Check();
  ASSERT_FALSE(checked.has_value());
  EXPECT_THAT(checked.error().message, HasSubstr("none of 2 rows can be used; the first: gpu \"gpu-z\""));
}

TEST_F(Job, NamesThePathOfWhatIsWrong) {
  const auto refusal = [&](const MadeSet& set) {
    set_ = set;
    const auto checked = Check();
    return checked ? std::string("nothing") : checked.error().message;
  };
  MadeSet ragged = set_, spec = set_, hardware = set_;
  ragged.rows += "r1,gpu-a\n";
  EXPECT_THAT(refusal(ragged), HasSubstr("made.csv: line 218, column 1: 2 fields where the header has 7"));
  spec.spec += "ranges2: [batch]\n";
  EXPECT_THAT(refusal(spec), HasSubstr("made.yaml: line"));
  hardware.hardware += "gpu-a,1,1\n";
  EXPECT_THAT(refusal(hardware), HasSubstr("hardware.csv: line 9: gpu \"gpu-a\" is there twice"));
}

TEST_F(Job, ATypoOfTheSpecIsNamedWithItsKey) {
  const auto with = [&](std::string_view from, std::string_view to) {
    MadeSet set = MadeSet::Make();
    set.spec.replace(set.spec.find(from), from.size(), to);
    set_ = set;
    const auto checked = Check();
    return checked ? std::string("nothing") : checked.error().message;
  };
  EXPECT_THAT(with("ranges: [batch]", "ranges: [bach]"), HasSubstr("ranges: there is no column"));
  EXPECT_THAT(with("peaks: [tflops,", "peaks: [tflop,"), HasSubstr("peaks: there is no column"));
  EXPECT_THAT(with("run: [precision]", "run: [precison]"), HasSubstr("categories: there is no column"));
  EXPECT_THAT(with("physics_by: [network]", "physics_by: [netwrk]"),
              HasSubstr("physics_by: there is no column"));
  EXPECT_THAT(with("devices: gpu_count", "devices: gpus"), HasSubstr("devices: there is no column"));
  EXPECT_THAT(with("batch: batch", "batch: btach"), HasSubstr("batch: there is no column"));
  EXPECT_THAT(with("id: row_id", "id: row_id\nskip: flag == 'x'"),
              HasSubstr("skip (flag == 'x'): there is no column"));
  EXPECT_THAT(with("1 / batch}", "1 / bach}"),
              HasSubstr("terms.step (1 / bach): there is no column \"bach\""));
}

TEST_F(Job, SaysHowAFileOfRowsWasAnswered) {
  auto job = Fit({.fit = {.estimator = "physical"}});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  const auto predictions = job->predictor.Predict(
      Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\na,gpu-a,small,8,1\nb,gpu-new,small,8,1\n"
                      "c,gpu-z,small,8,1\nd,gpu-z,small,8,2\n")));
  ASSERT_TRUE(predictions.has_value());
  const Json json = MakePredictResult(job->predictor, *predictions).ToJson();
  EXPECT_EQ(json["rows"], 4);
  EXPECT_EQ(json["inside"], 1);
  EXPECT_EQ(json["outside"], 1);
  EXPECT_EQ(json["refused"], 2);
  ASSERT_EQ(json["refusals"].size(), 1U);
  EXPECT_EQ(json["refusals"].begin().value(), 2);
}

// Every line of CSV text whose gpu is in `times` with its last cell, a rate, divided by that.
std::string Slowed(const std::string& rows, const std::map<std::string, double>& times) {
  const Csv csv = *ParseCsv(rows);
  std::string text = CsvLine(csv.columns);
  for (int64_t i = 0; i < csv.rows(); ++i) {
    std::vector<std::string> cells(csv.row(i).begin(), csv.row(i).end());
    if (const auto found = times.find(cells[1]); found != times.end())
      cells.back() = fmt::format("{:.6g}", *ParseNumber(cells.back()) / found->second);
    text += CsvLine(cells);
  }
  return text;
}

// Four short runs on the hardware that was never measured, everything taking `times` as long as by the law.
Table RunsOnNewHardware(double times) {
  std::string runs = "row_id,gpu,network,batch,gpu_count,items_per_s\n";
  for (const char* network : {"small", "middle", "large", "wide"}) {
    runs += fmt::format("m{0},gpu-new,{0},32,1,{1}\n", network,
                        MadeSet::ItemsPerSecond("gpu-new", network, 32, 1) / times);
  }
  return Table(*ParseCsv(runs));
}

const Table& AskedOfCalibrated() {
  static const Table& asked =
      *new Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\na,gpu-new,small,64,1\nb,gpu-a,small,64,1\n"));
  return asked;
}

// Each hardware has its own way of being slow, so what a few runs say of it is worth to be believed.
TEST_F(Job, AFewRunsOnHardwareNeverSeenCorrectIt) {
  set_.rows = Slowed(
      set_.rows,
      {{"gpu-a", 0.6}, {"gpu-b", 1.5}, {"gpu-c", 0.7}, {"gpu-d", 1.4}, {"gpu-e", 0.8}, {"gpu-f", 1.3}});
  auto job = Fit({.fit = {.estimator = "physical"}});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  Predictor& predictor = job->predictor;
  const auto before = *predictor.Predict(AskedOfCalibrated());
  const auto said = predictor.Calibrate(RunsOnNewHardware(1.6));
  ASSERT_TRUE(said.has_value()) << said.error().message;
  EXPECT_THAT(*said, ElementsAre(HasSubstr("gpu-new: 4 runs took")));
  const auto after = *predictor.Predict(AskedOfCalibrated());
  EXPECT_EQ(*after[1].value, *before[1].value);  // hardware that the fit knew stays as it was
  const double truth = MadeSet::ItemsPerSecond("gpu-new", "small", 64, 1) / 1.6;
  EXPECT_LT(std::abs(std::log(*after[0].value / truth)), 0.1 * std::abs(std::log(*before[0].value / truth)));
  EXPECT_LT(*after[0].high / *after[0].low, *before[0].high / *before[0].low);

  const auto none = predictor.Calibrate(
      Table(*ParseCsv("row_id,gpu,network,batch,gpu_count,items_per_s\na,gpu-z,small,8,1,1\n")));
  EXPECT_THAT(none.error().message,
              HasSubstr("no row can be used to calibrate; the first: a: gpu \"gpu-z\""));
}

// Three runs of one network that take 1.3 times as long as on the card that the fit knows.
TEST_F(Job, RunsOnHardwareThatTheFitKnewDecideToo) {
  auto job = Fit({.fit = {.estimator = "physical"}});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  std::string runs = "row_id,gpu,network,batch,gpu_count,items_per_s\n";
  for (const int batch : {8, 16, 32})
    runs += fmt::format("r{0},gpu-a,small,{0},1,{1}\n", batch,
                        MadeSet::ItemsPerSecond("gpu-a", "small", batch, 1) / 1.3);
  runs += "absurd,gpu-a,small,64,1,1e-3\n";
  const auto said = job->predictor.Calibrate(Table(*ParseCsv(runs)));
  ASSERT_TRUE(said.has_value()) << said.error().message;
  EXPECT_THAT(*said, ElementsAre(HasSubstr("run absurd is left out"), HasSubstr("gpu-a: 3 runs took 1.")));
  const auto after = *job->predictor.Predict(
      Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\na,gpu-a,small,24,1\nb,gpu-b,small,24,1\n")));
  const double truth = MadeSet::ItemsPerSecond("gpu-a", "small", 24, 1) / 1.3;
  EXPECT_NEAR(*after[0].value / truth, 1, 0.03);
  EXPECT_LE(*after[0].low, truth);
  EXPECT_GE(*after[0].high, truth);
  EXPECT_NEAR(*after[1].value / MadeSet::ItemsPerSecond("gpu-b", "small", 24, 1), 1, 0.05);
}

TEST_F(Job, RunsThatAreFartherOffThanAnyOtherHardwaresAreUsedAllTheSame) {
  auto job = Fit({.fit = {.estimator = "physical"}});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  const auto before = *job->predictor.Predict(AskedOfCalibrated());
  const auto said = job->predictor.Calibrate(RunsOnNewHardware(1.6));
  ASSERT_TRUE(said.has_value()) << said.error().message;
  const auto after = *job->predictor.Predict(AskedOfCalibrated());
  const double truth = MadeSet::ItemsPerSecond("gpu-new", "small", 64, 1) / 1.6;
  EXPECT_NEAR(*after[0].value / truth, 1, 0.1);
  EXPECT_LE(*after[0].low, truth);
  EXPECT_GE(*after[0].high, truth);
  EXPECT_EQ(*after[1].value, *before[1].value);  // of hardware without runs
}

}  // namespace
}  // namespace weir::predict
