#include "predict/checks.h"

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
  return CheckHardware(*ParseSpec(MadeSet::Make().spec), facts,
                       Table(*ParseCsv("row_id,gpu\na,g7\nb,g1\nc,g9\nd,g7\n")));
}

TEST(CheckHardware, LetsCardsOfOneKindDifferByHalf) { EXPECT_THAT(FactsChecked("", 1), testing::IsEmpty()); }

TEST(CheckHardware, FindsAPeakTenTimesTooHighOnACardOfHalfTheRate) {
  const auto findings = FactsChecked("g7", 10);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::kHardwareFact);
  EXPECT_THAT(findings[0].what, HasSubstr("hardware g7: fp16_tensor_tflops is 5 times"));
  EXPECT_THAT(findings[0].rows, ElementsAre("a", "d"));
  EXPECT_THAT(findings[0].places, ElementsAre(0, 3));
}

TEST(CheckHardware, KnowsAKindByItsArchitectureWhereThereIsNoComputeCapability) {
  const auto findings = FactsChecked("g9", 10);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].rows, ElementsAre("c"));
}

}  // namespace
}  // namespace weir::predict
