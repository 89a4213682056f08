// One number of JSON as a float or double, and back. Most numbers take a short way that is proved right for
// them; the others take the library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace weir::oip {

// The padding behind the text that is read here: as many bytes can be read, and none of them is of a
// number.
inline constexpr size_t kNumberPadding = 16;

namespace internal {

// A number of JSON, taken apart: digits * 10^exponent.
struct Decimal {
  const char* end = nullptr;  // behind it; null: it is no number
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool negative = false;
  bool whole = true;  // `digits` has them all: there are 19 at most
};

// At most eight digits, read together, after those in `digits`; returns how many there were.
// https://lemire.me/blog/2022/01/21/swar-explained-parsing-eight-digits/
[[gnu::always_inline]] inline unsigned ReadDigits(const char* text, uint64_t& digits) {
  static constexpr uint32_t kPowers[] = {1,       10,        100,        1000,       10'000,
                                         100'000, 1'000'000, 10'000'000, 100'000'000};
  uint64_t bytes = 0;
  std::memcpy(&bytes, text, sizeof bytes);
  const uint64_t other =
      ((bytes & 0xf0f0f0f0f0f0f0f0) | (((bytes + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4)) ^
      0x3333333333333333;
  const auto count = static_cast<unsigned>(std::countr_zero(other)) / 8;
  if (count == 0) return 0;
  uint64_t value = (bytes - 0x3030303030303030) << (64 - 8 * count);
  value = value * 10 + (value >> 8);
  value = ((value & 0x000000ff000000ff) * 0x000f424000000064 +
           ((value >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
          32;
  digits = digits * kPowers[count] + static_cast<uint32_t>(value);
  return count;
}

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

[[gnu::always_inline]] inline Decimal ReadDecimal(const char* text) {
  Decimal decimal;
  decimal.negative = *text == '-';
  text += decimal.negative;
  const char* const first = text;
  int64_t count = 0;
  for (; IsDigit(*text); ++text, ++count)
    decimal.digits = 10 * decimal.digits + static_cast<uint64_t>(*text - '0');
  if (count == 0 || (count > 1 && *first == '0')) return {};
  if (*text == '.') {
    const char* const point = ++text;
    for (unsigned more = 8; more == 8; text += more) more = ReadDigits(text, decimal.digits);
    decimal.exponent = point - text;
    if (decimal.exponent == 0) return {};
    count -= decimal.exponent;
    if (*first == '0') --count;
  }
  if (*text == 'e' || *text == 'E') {
    ++text;
    const bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    const char* const begin = text;
    int64_t exponent = 0;
    for (; IsDigit(*text); ++text) {
      if (exponent < 100'000'000) exponent = 10 * exponent + (*text - '0');
    }
    if (text == begin) return {};
    decimal.exponent += negative ? -exponent : exponent;
  }
  decimal.whole = count <= 19;
  decimal.end = text;
  return decimal;
}

// The number between the two, which is one, read the long way; infinite where it is too large.
float ReadExactly(const char* text, const char* end, float);
double ReadExactly(const char* text, const char* end, double);

}  // namespace internal

// Reads the number that begins at `text` to its nearest float or double and returns its end; null when there
// is none, as JSON writes them. What is too large gives an infinity. The short way for doubles is Clinger's:
// both factors are exact, so there is one rounding. For floats the digits may be rounded, too: the double is
// then off by less than two of its units, which changes the float only where the double is nearly half way
// between two floats.
template <typename T>
const char* ReadJsonNumber(const char* text, T& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr bool kFloat = std::is_same_v<T, float>;
  const internal::Decimal decimal = internal::ReadDecimal(text);
  if (decimal.end == nullptr) return nullptr;
  const bool exact = decimal.digits <= uint64_t{1} << 53;
  const bool small = decimal.exponent >= -22 && decimal.exponent <= 22;
  if (decimal.whole && small && (kFloat || exact)) [[likely]] {
    double magnitude = static_cast<double>(decimal.digits);
    if (decimal.exponent < 0) {
      magnitude /= kPowers[-decimal.exponent];
    } else {
      magnitude *= kPowers[decimal.exponent];
    }
    // The 29 bits that a float does not have, half of their range being 2^28. No float here is so small as to
    // have fewer bits, nor so large as to have none: 10^-22 <= magnitude < 10^42, and 0.
    const uint64_t rest = std::bit_cast<uint64_t>(magnitude) & 0x1fff'ffff;
    const bool half_way = rest - 0x0fff'fffc <= 8;
    if (!kFloat || !half_way) [[likely]] {
      value = static_cast<T>(decimal.negative ? -magnitude : magnitude);
      return decimal.end;
    }
  }
  value = internal::ReadExactly(text, decimal.end, T{});
  return decimal.end;
}

// Writes the shortest decimal that reads back as `value`, 24 characters at most, and returns its end. NaN,
// Infinity and -Infinity as Python and Triton write them.
char* WriteJsonNumber(char* to, float value);
char* WriteJsonNumber(char* to, double value);
// REQUIRES: kNumberRoom bytes at `to`: more than the number are touched.
inline constexpr size_t kNumberRoom = 64;

}  // namespace weir::oip
