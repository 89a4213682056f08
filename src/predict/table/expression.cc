#include "predict/table/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace weir::predict {

// An infix sign, a sign in front, or a function. `number` takes known numbers, and makes NaN or infinity
// where there is no answer; `value` takes what may be unknown.
struct Operation {
  std::string_view sign;
  int arguments = 2;
  int level = 0;  // of infix signs; a higher one binds closer
  double (*number)(double a, double b) = nullptr;
  Value (*value)(const Value* arguments) = nullptr;
};

namespace {

Value Known(double number) {
  if (!std::isfinite(number)) return {};
  return {.number = number, .text = {}};
}

bool IsTrue(const Value& value) { return value.number && *value.number != 0; }

bool AreSame(const Value& a, const Value& b) {
  // A number that was computed has no text, and so equals none.
  if (a.number && b.number) return *a.number == *b.number;
  const auto computed = [](const Value& value) { return value.number && value.text.empty(); };
  return !computed(a) && !computed(b) && a.text == b.text;
}

constexpr int kHighest = 5, kComparison = 2;
// Longer signs before their own beginnings.
constexpr Operation kInfix[] = {
    {"or", 2, 0, {}, [](const Value* v) { return Known(IsTrue(v[0]) || IsTrue(v[1]) ? 1 : 0); }},
    {"and", 2, 1, {}, [](const Value* v) { return Known(IsTrue(v[0]) && IsTrue(v[1]) ? 1 : 0); }},
    {"==", 2, kComparison, {}, [](const Value* v) { return Known(AreSame(v[0], v[1]) ? 1 : 0); }},
    {"!=", 2, kComparison, {}, [](const Value* v) { return Known(AreSame(v[0], v[1]) ? 0 : 1); }},
    {"<=", 2, kComparison, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {">=", 2, kComparison, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"<", 2, kComparison, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {">", 2, kComparison, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"??", 2, 3, {}, [](const Value* v) { return v[0].number ? v[0] : v[1]; }},
    {"+", 2, 4, [](double a, double b) { return a + b; }},
    {"-", 2, 4, [](double a, double b) { return a - b; }},
    {"*", 2, 5, [](double a, double b) { return a * b; }},
    {"/", 2, 5, [](double a, double b) { return a / b; }}};
constexpr Operation kPower = {"^", 2, 0, [](double a, double b) { return std::pow(a, b); }};
constexpr Operation kNegate = {"-", 1, 0, [](double a, double) { return -a; }};
constexpr Operation kNot = {"not", 1, 0, {}, [](const Value* v) { return Known(IsTrue(v[0]) ? 0 : 1); }};
constexpr Operation kFunctions[] = {
    {"if", 3, 0, {}, [](const Value* v) { return IsTrue(v[0]) ? v[1] : v[2]; }},
    {"log", 1, 0, [](double a, double) { return std::log(a); }},
    {"exp", 1, 0, [](double a, double) { return std::exp(a); }},
    {"sqrt", 1, 0, [](double a, double) { return std::sqrt(a); }},
    {"abs", 1, 0, [](double a, double) { return std::abs(a); }},
    {"floor", 1, 0, [](double a, double) { return std::floor(a); }},
    {"ceil", 1, 0, [](double a, double) { return std::ceil(a); }},
    {"min", 2, 0, [](double a, double b) { return std::min(a, b); }},
    {"max", 2, 0, [](double a, double b) { return std::max(a, b); }}};

}  // namespace

// Recursive descent; the lowest binding first.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) { expression_.text_ = text; }

  Result<Expression> Parse() {
    if (text_.size() > 4096) return Refuse("longer than 4096 bytes");
    TRY_STATUS(Binary(0));
    SkipSpace();
    if (at_ < text_.size()) return Refuse("nothing more belongs here");
    return std::move(expression_);
  }

 private:
  static bool IsWord(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }

  std::unexpected<Error> Refuse(std::string_view what) const {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("expression \"{}\", position {}: {}", text_.substr(0, 200), at_ + 1, what));
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool Take(std::string_view sign) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(sign)) return false;
    const size_t end = at_ + sign.size();
    if (IsWord(sign.back()) && end < text_.size() && IsWord(text_[end])) return false;
    at_ = end;
    return true;
  }

  void Emit(const Operation& operation) {
    expression_.steps_.push_back({.operation = &operation, .text = {}});
  }

  Status Binary(int level) {
    if (level > kHighest) return Unary();
    if (level == 0 && ++depth_ > 64) return Refuse("nested deeper than 64 levels");
    if (level == kComparison && Take("not")) return Not();
    TRY_STATUS(Binary(level + 1));
    while (const Operation* infix = TakeInfix(level)) {
      TRY_STATUS(Binary(level + 1));
      Emit(*infix);
      if (level == kComparison && TakeInfix(level))
        return Refuse("comparisons are not chained: join two of them by and");
    }
    if (level == 0) --depth_;
    return {};
  }

  const Operation* TakeInfix(int level) {
    for (const Operation& infix : kInfix) {
      if (infix.level == level && Take(infix.sign)) return &infix;
    }
    return nullptr;
  }

  // Negates the whole comparison, as in Python: not a == b is not (a == b).
  Status Not() {
    if (++depth_ > 64) return Refuse("nested deeper than 64 levels");
    TRY_STATUS(Binary(kComparison));
    Emit(kNot);
    --depth_;
    return {};
  }

  // A power binds before a minus in front of it, and from the right: -2^2 is -4, 2^3^2 is 512.
  Status Unary() {
    if (++depth_ > 64) return Refuse("nested deeper than 64 levels");
    if (Take("-")) {
      TRY_STATUS(Unary());
      Emit(kNegate);
    } else {
      TRY_STATUS(Primary());
      if (Take("^")) {
        TRY_STATUS(Unary());
        Emit(kPower);
      }
    }
    --depth_;
    return {};
  }

  Status Primary() {
    SkipSpace();
    if (at_ == text_.size()) return Refuse("something is missing here");
    if (Take("(")) {
      TRY_STATUS(Binary(0));
      return Take(")") ? Status() : Refuse("\")\" is missing");
    }
    if (Take("'")) return Text();
    const char c = text_[at_];
    if ((c >= '0' && c <= '9') || c == '.') return Number();
    if (!IsWord(c)) return Refuse(fmt::format("\"{}\" is no beginning of a value", c));
    return NameOrCall();
  }

  Status Text() {
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) return Refuse("the quote is not closed");
    expression_.steps_.push_back({.number = {}, .text = std::string(text_.substr(at_, end - at_))});
    at_ = end + 1;
    return {};
  }

  Status Number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Refuse("this is not a number");
    at_ = static_cast<size_t>(end - text_.data());
    expression_.steps_.push_back({.number = value, .text = {}});
    return {};
  }

  Status NameOrCall() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (!Take("(")) {
      if (std::ranges::find(expression_.names_, name) == expression_.names_.end()) {
        expression_.names_.push_back(name);
      }
      expression_.steps_.push_back({.is_name = true, .number = {}, .text = name});
      return {};
    }
    const auto* function = std::ranges::find(kFunctions, name, &Operation::sign);
    if (function == std::end(kFunctions)) return Refuse(fmt::format("there is no function \"{}\"", name));
    for (int i = 0; i < function->arguments; ++i) {
      if (i > 0 && !Take(",")) return Refuse(fmt::format("{} takes {} values", name, function->arguments));
      TRY_STATUS(Binary(0));
    }
    if (!Take(")")) return Refuse(fmt::format("{} takes {} values, then \")\"", name, function->arguments));
    Emit(*function);
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Expression expression_;
};

Result<Expression> Expression::Parse(std::string_view text) { return ExpressionParser(text).Parse(); }

std::optional<double> Expression::Evaluate(const Lookup& lookup) const {
  std::vector<Value> stack;
  for (const Step& step : steps_) {
    if (step.operation == nullptr) {
      stack.push_back(step.is_name ? lookup(step.text) : Value{.number = step.number, .text = step.text});
      continue;
    }
    const Operation& operation = *step.operation;
    const std::span<const Value> last = std::span(stack).last(static_cast<size_t>(operation.arguments));
    Value result;
    if (operation.value != nullptr) {
      result = operation.value(last.data());
    } else if (std::ranges::all_of(last, [](const Value& value) { return value.number.has_value(); })) {
      result = Known(operation.number(*last.front().number, *last.back().number));
    }
    stack.resize(stack.size() - last.size());
    stack.push_back(result);
  }
  return stack.back().number;
}

}  // namespace weir::predict
