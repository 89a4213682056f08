#include "load/session/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::load {
namespace {

using testing::HasSubstr;

TEST(Foreign, AFlagOfPerfAnalyzerIsNamedWithItsRemedy) {
  const Status refused = CheckForeign({"-m", "tiny", "--max-threads=4"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message,
              HasSubstr("it takes no \"--max-threads\" as perf_analyzer does: one thread"));
  EXPECT_THAT(CheckForeign({"-t", "4"}).error().message, HasSubstr("--concurrency-range"));
}

TEST(Foreign, SharedFlagsAndValuesPass) {
  EXPECT_TRUE(CheckForeign({"-m", "tiny", "-b", "4", "--percentile=95", "max-threads"}).has_value());
  EXPECT_TRUE(CheckForeign({}).has_value());
}

}  // namespace
}  // namespace weir::load
