#include "load/validate/validate_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "load/validate/read_result.h"
#include "load/verdict/judge.h"

namespace weir::load {
namespace {

using results::LoadResult;
using results::Reason;
using results::Standing;

constexpr Limits kLimits{};

// A level's verdict is the worst of its runs', so each run may ask for one.
class GeneratorCheck {
 public:
  GeneratorCheck(const LoadResult::Level& level, const LoadResult::Run& run, std::string where,
                 std::vector<Finding>& findings)
      : level_(level), run_(run), where_(std::move(where)), findings_(findings) {}

  void Check(std::optional<double> ceiling_per_s) {
    RateMissed();
    if (!run_.generator) return;
    const LoadResult::Generator& generator = *run_.generator;
    if (generator.sent > run_.planned || generator.late > generator.sent) {
      return Add(fmt::format("{} requests were planned, {} sent and {} of these late", run_.planned,
                             generator.sent, generator.late));
    }
    Late(generator);
    Empty(generator.empty_share.value_or(0));
    Busy(generator.busiest_thread, "of the time its busiest thread was busy");
    if (ceiling_per_s.value_or(0) > 0 && generator.busiest_thread > kLimits.worth_calibrating)
      Busy(generator.sent_per_s / *ceiling_per_s, "of what it can send went out");
  }

 private:
  void Add(std::string what) { findings_.push_back({rule::kGenerator, where_, std::move(what)}); }

  static bool IsAtLeast(const std::string& verdict, Standing standing) {
    return verdict == ToString(Standing::kInvalid) ||
           (standing == Standing::kSuspect && verdict == ToString(Standing::kSuspect));
  }

  void MustBeTold(Reason reason, Standing throughput, Standing latency, const std::string& what) {
    if (HasReason(level_, reason) && IsAtLeast(level_.verdict.throughput, throughput) &&
        IsAtLeast(level_.verdict.latency, latency)) {
      return;
    }
    Add(fmt::format("{}; for \"{}\" the throughput should be {} at best and the latency {}", what,
                    ToString(reason), ToString(throughput), ToString(latency)));
  }

  void RateMissed() {
    if (level_.concurrency || run_.by_count || run_.planned == 0 || !run_.generator) return;
    const double wanted = static_cast<double>(run_.planned),
                 got = std::round(run_.throughput_per_s * run_.measured_s);
    if (got >= (1 - kLimits.rate_share) * wanted - 1) return;
    MustBeTold(Reason::kRateMissed, Standing::kSuspect, Standing::kInvalid,
               fmt::format("{:g} of {:g} requests were answered in time, limit {:g} %", got, wanted,
                           100 * (1 - kLimits.rate_share)));
  }

  void Late(const LoadResult::Generator& generator) {
    if (level_.concurrency || generator.sent == 0) return;
    const double late = static_cast<double>(generator.late) / static_cast<double>(generator.sent);
    if (late <= kLimits.late_share) return;
    MustBeTold(Reason::kGeneratorLate, Standing::kSuspect, Standing::kInvalid,
               fmt::format("{:.3g} % of the requests left more than 1 ms late, limit {:g} %", 100 * late,
                           100 * kLimits.late_share));
  }

  void Empty(double share) {
    if (share <= kLimits.empty_suspect) return;
    const Standing standing = share > kLimits.empty_invalid ? Standing::kInvalid : Standing::kSuspect;
    MustBeTold(Reason::kGeneratorLate, standing, standing,
               fmt::format("the places stood empty for {:.3g} % of the time, limit {:g} %", 100 * share,
                           100 * kLimits.empty_suspect));
  }

  void Busy(double share, const char* what) {
    if (share <= kLimits.busy_suspect) return;
    const Standing standing = share > kLimits.busy_invalid ? Standing::kInvalid : Standing::kSuspect;
    MustBeTold(Reason::kGeneratorBusy, standing, standing,
               fmt::format("{:.3g} % {}, limit {:g} %", 100 * share, what, 100 * kLimits.busy_suspect));
  }

  const LoadResult::Level& level_;
  const LoadResult::Run& run_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

// Checks a level of one run against the figures that it was judged by.
void CheckSlip(const LoadResult::Level& level, const std::string& where, std::vector<Finding>& findings) {
  constexpr size_t kMedian = 0, kP99 = 3;
  const auto &median = level.response.percentiles[kMedian], &slip = level.slip.percentiles[kP99];
  if (level.concurrency || level.runs.size() != 1 || !median || !slip || *median <= 0) return;
  if (*slip <= kLimits.slip_share * *median * (1 + kRounding)) return;
  const bool is_valid = level.verdict.latency == ToString(Standing::kValid);
  if (!is_valid && HasReason(level, Reason::kGeneratorLate)) return;
  findings.push_back(
      {rule::kGenerator, where,
       fmt::format("p99 of the slip is {} ms, above {:g} % of the median of {} ms; the latency "
                   "should be no more than SUSPECT for it",
                   *slip, 100 * kLimits.slip_share, *median)});
}

}  // namespace

void CheckGenerator(const LoadResult::Level& level, std::optional<double> ceiling_per_s,
                    const std::string& where, std::vector<Finding>& findings) {
  CheckSlip(level, where, findings);
  for (size_t i = 0; i < level.runs.size(); ++i) {
    GeneratorCheck(level, level.runs[i], fmt::format("{}.runs[{}]", where, i), findings).Check(ceiling_per_s);
  }
}

}  // namespace weir::load
