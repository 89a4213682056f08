#include "stats/distributions.h"

#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>

namespace weir::stats {

double StudentTail(double degrees, double t) { return cdf(complement(boost::math::students_t(degrees), t)); }

double StudentQuantile(double degrees, double tail) {
  return quantile(complement(boost::math::students_t(degrees), tail));
}

double FisherTail(double numerator_degrees, double denominator_degrees, double f) {
  return cdf(complement(boost::math::fisher_f(numerator_degrees, denominator_degrees), f));
}

double NormalQuantile(double tail) { return quantile(complement(boost::math::normal(), tail)); }

double IncompleteBeta(double a, double b, double x) { return boost::math::ibeta(a, b, x); }
double IncompleteBetaRest(double a, double b, double x) { return boost::math::ibetac(a, b, x); }

}  // namespace weir::stats
