#include "report/number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::report {
namespace {

TEST(Number, HasFourDigitsAndNoExponent) {
  EXPECT_EQ(Number(412.06), "412.1");
  EXPECT_EQ(Number(41.206), "41.21");
  EXPECT_EQ(Number(4), "4");
  EXPECT_EQ(Number(1.5), "1.5");
  EXPECT_EQ(Number(999.97), "1,000");
  EXPECT_EQ(Number(13500), "13,500");
  EXPECT_EQ(Number(-1234567), "-1,234,567");
  EXPECT_EQ(Number(0.0123456), "0.01235");
  EXPECT_EQ(Number(0.5), "0.5");
  EXPECT_EQ(Number(0), "0");
  EXPECT_EQ(Number(1e12), "1.000e+12");
  EXPECT_EQ(Number(NAN), "-");
}

TEST(WithInterval, IsTheValueAloneWithoutOne) {
  EXPECT_EQ(WithInterval(412.06, 409, 415.25), "412.1 (409 to 415.2)");
  EXPECT_EQ(WithInterval(412.06, std::nullopt, std::nullopt), "412.1");
}

TEST(Percent, HasTwoPlacesBelowTenAndNoEmptyOnes) {
  EXPECT_EQ(Percent(0.034), "3.4 %");
  EXPECT_EQ(Percent(-0.05), "-5 %");
  EXPECT_EQ(Percent(0.95), "95 %");
  EXPECT_EQ(Percent(-0.00001), "0 %");
}

TEST(Exact, ReadsBackAsTheSame) {
  for (const double value : {0.1, 1.0 / 3, 1e300, -2.5e-10}) EXPECT_EQ(std::stod(Exact(value)), value);
  EXPECT_EQ(Exact(INFINITY), "");
}

}  // namespace
}  // namespace weir::report
