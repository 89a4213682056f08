#include "probe/findings_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::probe {
namespace {

using testing::HasSubstr, testing::Not;

const std::vector<Finding> kFindings = {
    {.kind = FindingKind::kForeignCpu, .severity = Severity::kOk, .what = "2 cores", .meaning = "unsaid"},
    {.kind = FindingKind::kForeignCpu,
     .severity = Severity::kWarning,
     .what = "others use 0.9 cores",
     .meaning = "trials are disturbed",
     .remedy = "end them"}};

TEST(FindingsText, SaysMeaningAndRemedyOfWhatIsNotWell) {
  const std::string text = FindingsText(TextStyle(false), kFindings);
  EXPECT_THAT(text, HasSubstr("it means: trials are disturbed"));
  EXPECT_THAT(text, HasSubstr("do: end them"));
  EXPECT_THAT(text, Not(HasSubstr("unsaid")));
  EXPECT_THAT(text, HasSubstr("1 would spoil a measurement, 0 to be known"));
}

TEST(FindingsText, TheResultHasEveryFinding) {
  const results::DoctorResult result = MakeDoctorResult(kFindings);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.warnings, 1);
  EXPECT_EQ(result.findings[1].remedy, "end them");
}

}  // namespace
}  // namespace weir::probe
