#include "monitor/watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::monitor {
namespace {

// A shell that runs `script`, waited for when this goes.
class Shell {
 public:
  explicit Shell(std::string script) {
    std::string sh = "sh", flag = "-c";
    char* arguments[] = {sh.data(), flag.data(), script.data(), nullptr};
    CHECK(::posix_spawnp(&pid_, "sh", nullptr, nullptr, arguments, environ) == 0);
  }
  ~Shell() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  int pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(WatchUntilTheyEnd, TellsWhatProcessesUsedTillTheLastEnded) {
  const SteadyClock clock;
  const Shell brief("exit 3"), longer("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
  const auto used = WatchUntilTheyEnd(clock, {.processes = {brief.pid(), longer.pid()}}, {});
  ASSERT_TRUE(used) << used.error().message;
  ASSERT_TRUE(used->app_cpu);
  EXPECT_GT(used->app_cpu->mean * used->wall_s, 0.05);
  EXPECT_FALSE(used->recogniser_cpu);
}

TEST(WatchUntilTheyEnd, EndsWhenAskedTo) {
  const SteadyClock clock;
  const Shell endless("while :; do :; done");
  std::stop_source stop;
  stop.request_stop();
  const auto used = WatchUntilTheyEnd(clock, {.processes = {endless.pid()}}, stop.get_token());
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_EQ(used->threads->max, 1);
  EXPECT_EQ(::kill(endless.pid(), 0), 0) << "it is left alone";
}

TEST(WatchUntilTheyEnd, NamesAProcessThatIsNotThere) {
  const SteadyClock clock;
  for (const int pid : {999'999'999, 0, -5}) {
    const auto used = WatchUntilTheyEnd(clock, {.processes = {pid}}, {});
    ASSERT_FALSE(used) << pid;
    EXPECT_EQ(used.error(),
              (Error{ErrorCode::kNotFound, fmt::format("monitor: there is no process {}", pid)}));
  }
  EXPECT_EQ(WatchUntilTheyEnd(clock, {}, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::monitor
