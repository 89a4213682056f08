#include "stats/cholesky.h"

#include <algorithm>
#include <cmath>

namespace weir::stats {

void Decompose(std::vector<double>& a, size_t n, double least) {
  for (size_t j = 0; j < n; ++j) {
    double* const row_j = &a[j * n];
    for (size_t i = j; i < n; ++i) {
      double* const row_i = &a[i * n];
      double sum = row_i[j];
      for (size_t k = 0; k < j; ++k) sum -= row_i[k] * row_j[k];
      row_i[j] = i == j ? std::sqrt(std::max(sum, least)) : sum / row_j[j];
    }
  }
}

void SolveLower(const std::vector<double>& l, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    double sum = b[i];
    for (size_t k = 0; k < i; ++k) sum -= l[i * n + k] * b[k];
    b[i] = sum / l[i * n + i];
  }
}

void SolveUpper(const std::vector<double>& l, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t i = n; i-- > 0;) {
    double sum = b[i];
    for (size_t k = i + 1; k < n; ++k) sum -= l[k * n + i] * b[k];
    b[i] = sum / l[i * n + i];
  }
}

}  // namespace weir::stats
