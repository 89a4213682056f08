#include "oip/http/json_number.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace weir::oip {
namespace {

// Returns whether a number that is out of range is too large, not too small.
bool IsHuge(const char* text, const char* end) {
  const std::string_view number(text, static_cast<size_t>(end - text));
  const size_t digits_end = std::min(number.find_first_of("eE"), number.size());
  const size_t point = std::min(number.substr(0, digits_end).find('.'), digits_end);
  const auto first = static_cast<int64_t>(number.find_first_of("123456789"));
  if (first == -1) return false;
  int64_t exponent = 0;
  if (digits_end < number.size()) {
    const char* begin = text + digits_end + 1;
    begin += *begin == '+';
    if (std::from_chars(begin, end, exponent).ec != std::errc()) return *begin != '-';
  }
  return static_cast<int64_t>(point) - first + exponent > 0;
}

template <typename T>
T ReadByLibrary(const char* text, const char* end) {
  T value = 0;
  if (std::from_chars(text, end, value).ec == std::errc()) return value;
  const T magnitude = IsHuge(text, end) ? std::numeric_limits<T>::infinity() : 0;
  return *text == '-' ? -magnitude : magnitude;
}

// Behind a minus: many readers take -0 for an integer, which has no sign.
constexpr std::string_view kZeroOfFloats = "0.0";

char* Write(char* to, std::string_view text) { return std::copy(text.begin(), text.end(), to); }

template <typename T>
char* WriteNotFinite(char* to, T value) {
  return Write(to, std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

// A number below 10^8 as eight digits, the first of them in the lowest byte.
// https://lemire.me/blog/2021/11/18/converting-integers-to-fix-digit-representations-quickly/
uint64_t EightDigits(uint32_t value) {
  const uint64_t fours = value / 10'000 | uint64_t{value % 10'000} << 32;
  const uint64_t hundreds = ((fours * 10'486) >> 20) & 0x0000'007f'0000'007f;
  const uint64_t twos = ((fours - 100 * hundreds) << 16) + hundreds;
  const uint64_t tens = ((twos * 103) >> 10) & 0x000f'000f'000f'000f;
  return (((twos - 10 * tens) << 8) + tens) | 0x3030'3030'3030'3030;
}

// The digits of a number of at most nine, as text that is moved about in registers: through memory every move
// would wait for the one before.
class Digits {
 public:
  explicit Digits(uint32_t number) {
    constexpr uint32_t kMostShort = 99'999'999;
    const uint32_t first = number / (kMostShort + 1);
    const uint64_t others = EightDigits(number % (kMostShort + 1));
    if (first > 0) {
      text_ = static_cast<Text>(others) << 8 | ('0' + first);
      count_ = 9;
    } else {
      const int zeros = std::countr_zero(others ^ 0x3030'3030'3030'3030) / 8;
      text_ = others >> (8 * zeros);
      count_ = 8 - zeros;
    }
  }
  int count() const { return count_; }
  // Writes 16 bytes, of which those from digit `from` on are meant.
  void Write(char* to, int from = 0) const {
    const Text text = text_ >> (8 * from);
    std::memcpy(to, &text, sizeof text);
  }

 private:
  using Text = unsigned __int128;
  Text text_ = 0;
  int count_ = 0;
};

}  // namespace

namespace internal {
float ReadExactly(const char* text, const char* end, float) { return ReadByLibrary<float>(text, end); }
double ReadExactly(const char* text, const char* end, double) { return ReadByLibrary<double>(text, end); }
}  // namespace internal

// fmt's Dragonbox without fmt's formatting, which costs three times as much again.
char* WriteJsonNumber(char* to, float value) {
  if (!std::isfinite(value)) [[unlikely]] {
    return WriteNotFinite(to, value);
  }
  *to = '-';
  to += std::signbit(value);
  if (value == 0) return Write(to, std::signbit(value) ? kZeroOfFloats : "0");
  const auto decimal = fmt::detail::dragonbox::to_decimal(std::abs(value));
  const Digits digits(decimal.significand);
  const int point = digits.count() + decimal.exponent;  // so many digits stand before the point
  if (point <= 0 && point > -5) {
    std::memcpy(to, "0.00000", 8);
    digits.Write(to + 2 - point);
    return to + 2 - point + digits.count();
  }
  if (point > 0 && point <= 16) {
    digits.Write(to);
    if (point >= digits.count()) {
      std::fill(to + digits.count(), to + point, '0');
      return to + point;
    }
    digits.Write(to + point + 1, point);
    to[point] = '.';
    return to + digits.count() + 1;
  }
  digits.Write(to);
  if (digits.count() > 1) {
    digits.Write(to + 2, 1);
    to[1] = '.';
    to += digits.count();
  }
  to[1] = 'e';
  return std::to_chars(to + 2, to + 7, point - 1).ptr;
}

char* WriteJsonNumber(char* to, double value) {
  if (!std::isfinite(value)) [[unlikely]] {
    return WriteNotFinite(to, value);
  }
  if (value == 0 && std::signbit(value)) return Write(Write(to, "-"), kZeroOfFloats);
  return fmt::format_to(to, FMT_COMPILE("{}"), value);
}

}  // namespace weir::oip
