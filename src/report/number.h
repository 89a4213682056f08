// Numbers as people read them.
#pragma once

#include <optional>
#include <string>

namespace weir::report {

// Four significant digits without an exponent from 1e-4 to below 1e9, whole numbers from 1,000 on with
// commas; "-" for what is not finite.
std::string Number(double value);
// "412.1 (409 to 415)"; the value alone without an interval.
std::string WithInterval(double value, const std::optional<double>& low, const std::optional<double>& high);
// A share as a percentage: 0.034 is "3.4 %".
std::string Percent(double share);
// The shortest text that reads back as the same double: for programs.
std::string Exact(double value);

}  // namespace weir::report
