#include "load/session/peak_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::load {
namespace {

constexpr double kLonger = 4;  // halves the standard error of the share of requests over the bound
// Below this share of the first rate a bound that fails does so for want of a faster system, not of room.
constexpr double kLeastShare = 1.0 / 1024;

}  // namespace

Result<PeakSearch> PeakSearch::Create(Options options) {
  const auto invalid = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  if (!(options.start_rate > 0 && options.start_rate <= options.most && std::isfinite(options.most))) {
    return invalid(fmt::format("a search goes from a rate above 0 to one no lower, not from {:g} to {:g}",
                               options.start_rate, options.most));
  }
  if (!(options.least >= 0 && options.least <= options.start_rate)) {
    return invalid(
        fmt::format("a search that begins at {:g} goes no lower than {:g}: the least is at most the first",
                    options.start_rate, options.least));
  }
  if (!(options.bracket >= 1e-6 && options.bracket <= 1))
    return invalid(fmt::format("the bracket of a search is between 1e-6 and 1, not {:g}", options.bracket));
  if (options.confirmations < 1)
    return invalid(fmt::format("an answer takes 1 confirmation at least, not {}", options.confirmations));
  if (options.most_probes < 1)
    return invalid(fmt::format("a search takes 1 probe at least, not {}", options.most_probes));
  return PeakSearch(options);
}

PeakSearch::PeakSearch(const Options& options) : options_(options) { Search(); }

double PeakSearch::least() const { return std::max(options_.least, options_.start_rate * kLeastShare); }

void PeakSearch::Tell(stats::Answer holds) {
  CHECK(probe_.has_value());
  const Probe asked = *probe_;
  ++told_;
  if (holds == stats::Answer::kUndecided && asked.length_factor == 1)
    return Ask(asked.rate, asked.kind, kLonger);
  const bool held = holds == stats::Answer::kYes;
  if (!held) high_ = asked.rate;
  if (asked.kind == Probe::Kind::kSearch) {
    if (held) low_ = asked.rate;
    return Search();
  }
  confirmed_ = held ? confirmed_ + 1 : 0;
  Confirm(held ? asked.rate : asked.rate / (1 + options_.bracket));
}

void PeakSearch::Ask(double rate, Probe::Kind kind, double length_factor) {
  if (told_ >= options_.most_probes) return End(kind == Probe::Kind::kConfirm ? rate : low_, false);
  probe_ = Probe{
      .rate = rate, .kind = kind, .length_factor = length_factor, .seed_index = static_cast<uint64_t>(told_)};
}

void PeakSearch::Search() {
  if (!low_ && !high_) return Ask(options_.start_rate, Probe::Kind::kSearch);
  if (!low_) {
    if (*high_ / 2 < least()) return End(std::nullopt, false);
    return Ask(*high_ / 2, Probe::Kind::kSearch);
  }
  if (!high_) {
    if (*low_ >= options_.most) return Confirm(*low_);
    return Ask(std::min(2 * *low_, options_.most), Probe::Kind::kSearch);
  }
  if (*high_ <= *low_ * (1 + options_.bracket)) return Confirm(*low_);
  Ask(std::sqrt(*low_ * *high_), Probe::Kind::kSearch);
}

void PeakSearch::Confirm(double rate) {
  if (confirmed_ >= options_.confirmations) return End(rate, true);
  if (rate < least()) return End(std::nullopt, false);
  Ask(rate, Probe::Kind::kConfirm);
}

void PeakSearch::End(std::optional<double> rate, bool confirmed) {
  probe_.reset();
  outcome_ = Outcome{.rate = rate, .confirmed = confirmed, .probes = told_, .failed_at = high_};
}

}  // namespace weir::load
