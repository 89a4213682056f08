// The distributions that tests and intervals need, by Boost.Math, which only this file compiles: it takes
// seconds. Pure functions, any thread. Degrees are above 0 and need not be whole.
#pragma once

namespace weir::stats {

// P(T > t) of Student's distribution, and the t whose upper tail is `tail` (0 to 1, both excluded).
double StudentTail(double degrees, double t);
double StudentQuantile(double degrees, double tail);

// P(F > f) of Fisher's distribution.
double FisherTail(double numerator_degrees, double denominator_degrees, double f);

// The z whose upper tail under the standard normal distribution is `tail`.
double NormalQuantile(double tail);

// The regularised incomplete beta function I_x(a, b), and 1 less it without the loss of small values.
double IncompleteBeta(double a, double b, double x);
double IncompleteBetaRest(double a, double b, double x);

}  // namespace weir::stats
