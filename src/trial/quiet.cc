#include "trial/quiet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "results/thresholds.h"

namespace weir::trial {

std::optional<monitor::MachineStat> ReadMachineStat() {
  const auto text = ReadTextFile("/proc/stat");
  return text ? monitor::ParseMachineStat(*text) : std::nullopt;
}

QuietWait::QuietWait(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), left_(options_.budget) {}

bool QuietWait::SampleIsQuiet() {
  const auto before = options_.read();
  options_.sleep_until(clock_.Now() + options_.sample);
  const auto after = options_.read();
  if (!before || !after) return true;
  const double busy = Seconds(after->busy - before->busy), steal = Seconds(after->steal - before->steal);
  const double all = busy + steal + Seconds(after->idle - before->idle);
  if (!(all > 0)) return true;
  const double cores = all / Seconds(options_.sample);
  seen_ = fmt::format("others use {:.2g} of {:.2g} cores, the hypervisor takes {:.2g} %",
                      busy / Seconds(options_.sample), cores, 100 * steal / all);
  return busy / all <= results::threshold::kForeignShareOfTrial &&
         100 * steal / all <= results::threshold::kStealPercent;
}

bool QuietWait::Wait(const std::stop_token& stop) {
  while (left_ > Duration{} && !stop.stop_requested()) {
    const Instant begin = clock_.Now();
    if (SampleIsQuiet()) return true;  // a look at a quiet machine costs nothing of the budget
    left_ = std::max(Duration{}, left_ - (clock_.Now() - begin));
  }
  return false;
}

}  // namespace weir::trial
