#include "trial/cpu_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/proc.h"

namespace weir::trial {
namespace {

using testing::HasSubstr;

TEST(CpuLimit, HoldsAProcessAndLetsItGo) {
  auto limit = CpuLimit::Make("test", 0.5);
  if (!limit) GTEST_SKIP() << limit.error().message;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string groups = "/proc/" + std::to_string(child) + "/cgroup";
  EXPECT_TRUE((*limit)->Add(child));
  EXPECT_THAT(monitor::ReadSmall(groups).value_or(""), HasSubstr("/weir-test-"));
  limit->reset();
  EXPECT_THAT(monitor::ReadSmall(groups).value_or(""), testing::Not(HasSubstr("/weir-test-")));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(CpuLimit, NamesAProcessThatIsGone) {
  auto limit = CpuLimit::Make("test", 1);
  if (!limit) GTEST_SKIP() << limit.error().message;
  EXPECT_FALSE((*limit)->Add(0x3fffffff));
}

}  // namespace
}  // namespace weir::trial
