// The mean of one long series whose neighbours are alike, and how well it is known. Pure functions over
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weir::stats {

struct MeanInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
  double standard_error = 0;   // of the mean, with effective_n
  std::optional<double> lag1;  // autocorrelation of neighbouring batches; nothing where all are equal
  double effective_n = 0;      // independent batches that would say as much
  int64_t batches = 0;
};

// Student's interval of the mean from the means of batches that follow each other without overlap and are of
// one size (Law and Kelton, Simulation Modeling and Analysis, section 9.5.3). Batches that are long enough
// are not correlated, and effective_n is their number n. Where lag1 is above 0 at the 5 % level, above 1.645
// / sqrt(n) (Bartlett 1946), they are too short, and the interval is widened: effective_n is then n (1 -
// lag1) / (1 + lag1), as for a first-order autoregressive series, in the standard error and, less 1 and at
// least 1, as degrees of freedom. Nothing below 10 batches, or where one is not finite. confidence is in (0,
// 1).
std::optional<MeanInterval> BatchMeans(std::span<const double> batch_means, double confidence = 0.95);

}  // namespace weir::stats
