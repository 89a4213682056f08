#include "monitor/usage_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::monitor {
namespace {

using testing::HasSubstr, testing::Not;

TEST(UsageText, HasALineForEachQuantityThatWasMeasured) {
  Resources used;
  used.samples = 10;
  used.period_ms = 100;
  used.app_cpu = Range{.mean = 1.5, .max = 2, .min = 0.5};
  const std::string text = ResourceText(TextStyle(false), used);
  EXPECT_THAT(text, HasSubstr("over 10 samples of 100 ms"));
  EXPECT_THAT(text, HasSubstr("CPU, processes        1.50 cores  (0.50 to 2.00)"));
  EXPECT_THAT(text, Not(HasSubstr("memory, container")));
  EXPECT_THAT(text, Not(HasSubstr("GPU")));
}

TEST(UsageText, NamesWaitsOnlyWhereThereWereAny) {
  Resources used;
  EXPECT_THAT(ResourceText(TextStyle(false), used), Not(HasSubstr("waited")));
  used.cpu_pressure_percent = 12.5;
  used.io_pressure_percent = 0.001;
  const std::string text = ResourceText(TextStyle(false), used);
  EXPECT_THAT(text, HasSubstr("CPU 12.50 % of the time"));
  EXPECT_THAT(text, Not(HasSubstr("storage 0.00")));
}

TEST(UsageText, HasTheTimesOfACommand) {
  const CommandUsage usage{.wall_s = 2, .user_s = 1.25, .system_s = 0.5, .max_resident_bytes = 3'000'000};
  EXPECT_THAT(UsageText(TextStyle(false), usage),
              HasSubstr("wall time 2.000 s; CPU 1.250 s user, 0.500 s system; largest process 3"));
}

}  // namespace
}  // namespace weir::monitor
