#include "predict/validation/checks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Eight cards of one kind with a tensor peak of 40 a thousand cores and GHz, the last two at half of it, and
// two of a vendor that tells no compute capability.
std::vector<Finding> FactsChecked(const std::string& wrong, double times) {
  std::string hardware =
      "gpu,vendor,architecture,compute_capability,cuda_cores,boost_clock_mhz,fp32_tflops,fp16_tensor_"
      "tflops\n";
  for (int i = 0; i < 10; ++i) {
    const bool other = i >= 8;
    const int cores = 1000 + 200 * i;
    const std::string name = fmt::format("g{}", i);
    double tensor = cores * 2000e-6 * (other ? 60 : i >= 6 ? 20 : 40);
    if (name == wrong) tensor *= times;
    hardware += fmt::format("{},{},{},{},{},2000,{},{}\n", name, other ? "two" : "one", other ? "X" : "Y",
                            other ? "" : "8.9", cores, cores * 4000e-6, tensor);
  }
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(hardware), "gpu"), .networks = {}};
  return CheckFacts(*ParseSpec(MadeSet::Make().spec), facts,
                    Table(*ParseCsv("row_id,gpu\na,g7\nb,g1\nc,g9\nd,g7\n")));
}

TEST(CheckFacts, LetsCardsOfOneKindDifferByHalf) { EXPECT_THAT(FactsChecked("", 1), testing::IsEmpty()); }

TEST(CheckFacts, FindsAPeakTenTimesTooHighOnACardOfHalfTheRate) {
  const auto findings = FactsChecked("g7", 10);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::kHardwareFact);
  EXPECT_THAT(findings[0].what, HasSubstr("hardware g7: fp16_tensor_tflops is 5 times"));
  EXPECT_THAT(findings[0].rows, ElementsAre("a", "d"));
  EXPECT_THAT(findings[0].places, ElementsAre(0, 3));
}

TEST(CheckFacts, KnowsAKindByItsArchitectureWhereThereIsNoComputeCapability) {
  const auto findings = FactsChecked("g9", 10);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].rows, ElementsAre("c"));
}

TEST(CheckFacts, FindsACellOfAFactThatIsNoNumber) {
  std::string hardware = "gpu,l2_mb\n";
  for (int i = 0; i < 9; ++i) hardware += fmt::format("g{},{}\n", i, i == 4 ? "6 MB" : "6");
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(hardware), "gpu"), .networks = {}};
  const auto findings =
      CheckFacts(*ParseSpec(MadeSet::Make().spec), facts, Table(*ParseCsv("row_id,gpu\na,g7\n")));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::kNotANumber);
  EXPECT_EQ(findings[0].what, "hardware.csv, line 6: l2_mb is \"6 MB\", not a finite number");
}

// One run under two machines' names is a copy; another time is not.
TEST(CheckCells, FindsCopiesUnderAnotherMachine) {
  std::string text = MadeSet::Make().spec;
  const std::string from = "  run: [precision]";
  text.replace(text.rfind(from), from.size(), from + "\n  machine: [system]");
  const auto findings =
      CheckCells(*ParseSpec(text), Table(*ParseCsv("row_id,system,gpu,batch,items_per_s\n"
                                                   "a,one,g,8,5\nb,two,g,8,5\nc,two,g,8,6\n")));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::kDuplicate);
  EXPECT_THAT(findings[0].rows, ElementsAre("b"));
}

TEST(CheckExpectations, NamesTheRowsThatContradictTheSpec) {
  const MadeSet made = MadeSet::Make();
  const Spec spec = *ParseSpec(made.spec + "expect: {a batch that the devices share: batch >= gpu_count}\n");
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  const auto rows = MakeRows(spec, facts,
                             Table(*ParseCsv("row_id,gpu,network,batch,gpu_count,precision\n"
                                             "a,gpu-a,small,8,4,fp32\nb,gpu-a,small,2,4,fp32\n")),
                             WithTarget::kNo);
  const auto findings = CheckExpectations(*rows);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::kContradiction);
  EXPECT_THAT(findings[0].rows, ElementsAre("b"));
  EXPECT_THAT(findings[0].what, HasSubstr("a batch that the devices share"));
}

// One row of four devices is a fifth as fast; how devices are joined is a category, as it is in real sets.
TEST(CheckTimes, FindsARowThatDoesNotScaleThoughACategoryGoesWithTheCount) {
  const MadeSet made = MadeSet::Make();
  std::string text = made.spec;
  text.replace(text.find("gflops}"), 7, "gflops, joined: gpu_count > 1}");
  text.replace(text.find("[precision]"), 11, "[precision, joined]");
  const Spec spec = *ParseSpec(text);
  Csv csv = *ParseCsv(made.rows);
  const size_t count = 4, rate = 6;  // columns
  std::string slow;
  for (size_t row = 0; slow.empty(); ++row) {
    const auto cell = [&](size_t column) -> std::string& {
      return csv.cells[row * csv.columns.size() + column];
    };
    if (cell(count) != "4") continue;
    slow = cell(0);
    cell(rate) = fmt::format("{}", *ParseNumber(cell(rate)) / 5);
  }
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  auto rows = *MakeRows(spec, facts, Table(std::move(csv)), WithTarget::kYes);
  const auto findings = CheckTimes(Data::Make(spec, std::move(rows)), Seed(1), 1);
  std::vector<std::string> found;
  for (const Finding& finding : findings) {
    if (finding.fault == Fault::kScaling) found.push_back(finding.rows.front());
  }
  EXPECT_THAT(found, ElementsAre(slow));
}

}  // namespace
}  // namespace weir::predict
