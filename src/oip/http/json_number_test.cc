#include "oip/http/json_number.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <string>

#include "base/seed.h"

namespace weir::oip {
namespace {

template <typename T>
std::string Written(T value) {
  char text[kNumberRoom];
  return {text, WriteJsonNumber(text, value)};
}

// How many characters of `text` were read; 0 for none.
template <typename T>
size_t Read(const std::string& text, T& value) {
  const std::string padded = text + std::string(kNumberPadding, ' ');
  const char* const end = ReadJsonNumber(padded.c_str(), value);
  return end == nullptr ? 0 : static_cast<size_t>(end - padded.c_str());
}

template <typename T>
void ExpectAsTheLibraryReads(const std::string& text) {
  T ours = 7, library = 7;
  ASSERT_EQ(Read(text, ours), text.size()) << text;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), library);
  if (result.ec != std::errc()) {
    EXPECT_TRUE(std::isinf(ours) || ours == 0) << text;
  } else {
    EXPECT_EQ(ours, library) << text;
    EXPECT_EQ(std::signbit(ours), std::signbit(library)) << text;
  }
}

TEST(JsonNumber, IsReadToTheNearestAsTheLibraryDoes) {
  Random random = Seed(1).MakeRandom();
  for (int i = 0; i < 300'000; ++i) {
    std::string text = random.Uniform() < 0.5 ? "-" : "";
    const auto digits = [&](int64_t count) {
      while (count-- > 0) text += static_cast<char>('0' + random.Integer(0, 9));
    };
    if (random.Uniform() < 0.5) {
      text += '0';
    } else {
      text += static_cast<char>('1' + random.Integer(0, 8));
      digits(random.Integer(0, random.Uniform() < 0.1 ? 30 : 4));
    }
    if (random.Uniform() < 0.9) {
      text += '.';
      if (random.Uniform() < 0.1) text += std::string(static_cast<size_t>(random.Integer(0, 50)), '0');
      digits(random.Integer(1, 20));
    }
    if (random.Uniform() < 0.3) text += fmt::format("e{}", random.Integer(-60, 60));
    ExpectAsTheLibraryReads<float>(text);
    ExpectAsTheLibraryReads<double>(text);
  }
}

// The decimals of the points half way between two floats, exactly and a little off.
TEST(JsonNumber, IsRightWhereADoubleLiesHalfWayBetweenTwoFloats) {
  Random random = Seed(2).MakeRandom();
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<uint32_t>(random.Integer(0x20000000, 0x5f000000));  // 1e-19 to 9e18
    const double half = (double{std::bit_cast<float>(bits)} + double{std::bit_cast<float>(bits + 1)}) / 2;
    for (const double value : {half, std::nextafter(half, 0.0), std::nextafter(half, 1e300)}) {
      ExpectAsTheLibraryReads<float>(fmt::format("{}", value));
      ExpectAsTheLibraryReads<float>(fmt::format("{:.18f}", value));
    }
  }
}

TEST(JsonNumber, OutOfRangeIsInfiniteOrNothing) {
  for (const auto& [text, wanted] :
       std::vector<std::pair<std::string, double>>{{"1e400", INFINITY},
                                                   {"-1e400", -INFINITY},
                                                   {"1e-400", 0},
                                                   {"0e400", 0},
                                                   {"0.0e-99999999999999999999", 0},
                                                   {"1e99999999999999999999", INFINITY},
                                                   {"1e-99999999999999999999", 0},
                                                   {"1" + std::string(400, '0'), INFINITY},
                                                   {"0." + std::string(400, '0') + "1", 0},
                                                   {"0." + std::string(400, '0') + "1e+401", 1},
                                                   {"1" + std::string(400, '0') + "e-400", 1}}) {
    double number = 7;
    EXPECT_EQ(Read(text, number), text.size());
    EXPECT_EQ(number, wanted) << text;
    float single = 7;
    EXPECT_EQ(Read(text, single), text.size());
    EXPECT_EQ(double{single}, wanted) << text;
  }
}

TEST(JsonNumber, WhatJsonDoesNotCallANumberIsNone) {
  for (const char* text : {"", "-", "+1", ".5", "1.", "-.5", "01", "-01", "00", "1.e5", "1e", "1e+", "nan",
                           "inf", "x", "--1", "- 1"}) {
    float number = 0;
    EXPECT_EQ(Read(text, number), 0u) << text;
  }
  float number = 0;
  EXPECT_EQ(Read("1.5]", number), 3u);
  EXPECT_EQ(Read("0x1", number), 1u);
}

TEST(JsonNumber, IsWrittenAsShortAsCanBeAndReadsBackTheSame) {
  Random random = Seed(3).MakeRandom();
  for (int i = 0; i < 300'000; ++i) {
    const float value = i % 3 == 0   ? std::bit_cast<float>(static_cast<uint32_t>(random.Next()))
                        : i % 3 == 1 ? static_cast<float>(random.Normal())
                                     : static_cast<float>(random.Integer(-100000, 100000)) / 64;
    if (!std::isfinite(value)) continue;
    const std::string text = Written(value);
    float again = 0;
    ASSERT_EQ(Read(text, again), text.size()) << text;
    ASSERT_EQ(std::bit_cast<uint32_t>(again), std::bit_cast<uint32_t>(value)) << text;
    float by_library = 0;
    std::from_chars(text.data(), text.data() + text.size(), by_library);
    ASSERT_EQ(by_library, value) << text;
    // No more digits than the library's shortest.
    char shortest[64];
    const auto end = std::to_chars(shortest, shortest + 64, value, std::chars_format::scientific).ptr;
    const auto digits = [](std::string_view s) {
      std::string only;
      for (const char c : s.substr(0, s.find('e'))) {
        if (c >= '0' && c <= '9' && !(only.empty() && c == '0')) only += c;
      }
      while (only.ends_with('0')) only.pop_back();
      return only.size();
    };
    ASSERT_EQ(digits(text), digits({shortest, end})) << text;
  }
}

TEST(JsonNumber, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(Written(0.f), "0");
  EXPECT_EQ(Written(-0.f), "-0.0");
  EXPECT_EQ(Written(-0.0), "-0.0");
  EXPECT_EQ(Written(0.0), "0");
  EXPECT_EQ(Written(1.f), "1");
  EXPECT_EQ(Written(-12.5f), "-12.5");
  EXPECT_EQ(Written(0.1f), "0.1");
  EXPECT_EQ(Written(0.00012f), "0.00012");
  EXPECT_EQ(Written(1e-7f), "1e-7");
  EXPECT_EQ(Written(16777216.f), "16777216");
  EXPECT_EQ(Written(1e15f), "1000000000000000");
  EXPECT_EQ(Written(1.5e20f), "1.5e20");
  EXPECT_EQ(Written(3.4028235e38f), "3.4028235e38");
  EXPECT_EQ(Written(1e-45f), "1e-45");
  EXPECT_EQ(Written(0.1), "0.1");
  EXPECT_EQ(Written(NAN), "NaN");
  EXPECT_EQ(Written(-INFINITY), "-Infinity");
  EXPECT_EQ(Written(double{INFINITY}), "Infinity");
}

}  // namespace
}  // namespace weir::oip
