#include "report/axis.h"

#include <algorithm>
#include <cmath>

namespace weir::report {

std::vector<double> TicksFromZero(double most, int wanted) {
  const double rough = most / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * power >= rough) {
      step = round * power;
      break;
    }
  }
  std::vector<double> ticks{0};
  // Rounding of the division must not add a tick behind the last one that is needed.
  const int count = static_cast<int>(std::ceil(most / step - 1e-9));
  for (int i = 1; i <= count; ++i) ticks.push_back(i * step);
  return ticks;
}

Scale::Scale(Kind kind, double low, double high, double begin, double end)
    : kind_(kind), low_(low), high_(high), begin_(begin), end_(end) {}

double Scale::operator()(double value) const {
  const double share = kind_ == Kind::kLinear ? (value - low_) / (high_ - low_)
                                              : std::log(value / low_) / std::log(high_ / low_);
  return begin_ + share * (end_ - begin_);
}

Scale::Kind KindFor(const std::vector<double>& values) {
  if (values.empty()) return Scale::Kind::kLinear;
  const auto [least, most] = std::ranges::minmax(values);
  return least > 0 && most / least >= 8 ? Scale::Kind::kLogarithmic : Scale::Kind::kLinear;
}

std::vector<double> TicksOver(const std::vector<double>& values) {
  constexpr size_t kMostValues = 12;
  if (values.size() <= kMostValues) return values;
  const double first = values.front(), last = values.back();
  std::vector<double> ticks;
  if (KindFor(values) == Scale::Kind::kLogarithmic) {
    for (double power = std::pow(10, std::floor(std::log10(first))); power <= last; power *= 10) {
      for (const double round : {1.0, 2.0, 5.0}) ticks.push_back(round * power);
    }
  } else {
    ticks = TicksFromZero(last);
  }
  std::erase_if(ticks, [&](double tick) { return tick < first || tick > last; });
  return ticks;
}

}  // namespace weir::report
