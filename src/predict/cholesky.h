// Systems of equations whose matrix is symmetric and positive definite.
#pragma once

#include <cstddef>
#include <vector>

namespace weir::predict {

// Cholesky's L in place of the lower triangle of a (n x n, row-major; what is above the diagonal is neither
// read nor written). A pivot is `least` at least, so that rounding makes no root of a negative.
void Decompose(std::vector<double>& a, size_t n, double least);

// b becomes L^-1 b.
void SolveLower(const std::vector<double>& l, std::vector<double>& b);
// b becomes L^-T b.
void SolveUpper(const std::vector<double>& l, std::vector<double>& b);

}  // namespace weir::predict
