// Solves systems of equations whose matrix is symmetric and positive definite.
#pragma once

#include <cstddef>
#include <vector>

namespace weir::stats {

// Replaces the lower triangle of a (n x n, row-major) by Cholesky's L; the upper triangle is not used. A
// pivot is at least `least`, so that rounding gives no root of a negative number.
void Decompose(std::vector<double>& a, size_t n, double least);

// Replaces b by L^-1 b.
void SolveLower(const std::vector<double>& l, std::vector<double>& b);
// Replaces b by L^-T b.
void SolveUpper(const std::vector<double>& l, std::vector<double>& b);

}  // namespace weir::stats
