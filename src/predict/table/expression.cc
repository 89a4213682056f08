#include "predict/table/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "base/contains.h"

namespace weir::predict {

namespace {

Value Known(double number) {
  if (!std::isfinite(number)) return {};
  return {.number = number, .text = {}};
}

bool SameText(const Value& a, const Value& b) {
  // A number that was computed has no text, and so equals none.
  if (a.number && b.number) return *a.number == *b.number;
  const auto computed = [](const Value& value) { return value.number && value.text.empty(); };
  return !computed(a) && !computed(b) && a.text == b.text;
}

bool IsTrue(const Value& value) { return value.number && *value.number != 0; }

// Applies a function of numbers; unknown if one of them is.
template <auto Function>
Value OfOne(const Value* x) {
  return x->number ? Known(Function(*x->number)) : Value();
}
template <auto Function>
Value OfTwo(const Value* x) {
  return x[0].number && x[1].number ? Known(Function(*x[0].number, *x[1].number)) : Value();
}

}  // namespace

struct Expression::Operation {
  std::string_view name;
  int takes;  // values
  Value (*apply)(const Value* values);
  int level = 0;  // of binding, between two values
};

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
  using Operation = Expression::Operation;
  // Longer signs before their own beginnings.
  static constexpr Operation kInfix[] = {
      {"or", 2, [](const Value* x) { return Known(IsTrue(x[0]) || IsTrue(x[1])); }, 0},
      {"and", 2, [](const Value* x) { return Known(IsTrue(x[0]) && IsTrue(x[1])); }, 1},
      {"==", 2, [](const Value* x) { return Known(SameText(x[0], x[1])); }, 2},
      {"!=", 2, [](const Value* x) { return Known(!SameText(x[0], x[1])); }, 2},
      {"<=", 2, OfTwo<std::less_equal<double>{}>, 2},
      {">=", 2, OfTwo<std::greater_equal<double>{}>, 2},
      {"<", 2, OfTwo<std::less<double>{}>, 2},
      {">", 2, OfTwo<std::greater<double>{}>, 2},
      {"??", 2, [](const Value* x) { return x[0].number ? x[0] : x[1]; }, 3},
      {"+", 2, OfTwo<std::plus<double>{}>, 4},
      {"-", 2, OfTwo<std::minus<double>{}>, 4},
      {"*", 2, OfTwo<std::multiplies<double>{}>, 5},
      {"/", 2, OfTwo<std::divides<double>{}>, 5}};
  static constexpr int kHighest = 5, kComparison = 2;
  static constexpr Operation kNot = {"not", 1, [](const Value* x) { return Known(!IsTrue(*x)); }};
  static constexpr Operation kNegate = {"-", 1, OfOne<std::negate<double>{}>};
  static constexpr Operation kPower = {"^", 2, OfTwo<[](double x, double y) { return std::pow(x, y); }>};
  static constexpr Operation kFunctions[] = {
      {"if", 3, [](const Value* x) { return IsTrue(x[0]) ? x[1] : x[2]; }},
      {"log", 1, OfOne<[](double x) { return std::log(x); }>},
      {"exp", 1, OfOne<[](double x) { return std::exp(x); }>},
      {"sqrt", 1, OfOne<[](double x) { return std::sqrt(x); }>},
      {"abs", 1, OfOne<[](double x) { return std::abs(x); }>},
      {"floor", 1, OfOne<[](double x) { return std::floor(x); }>},
      {"ceil", 1, OfOne<[](double x) { return std::ceil(x); }>},
      {"min", 2, OfTwo<[](double x, double y) { return std::min(x, y); }>},
      {"max", 2, OfTwo<[](double x, double y) { return std::max(x, y); }>}};

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
      if (infix.level == level && Take(infix.name)) return &infix;
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
    expression_.steps_.push_back({.text = std::string(text_.substr(at_, end - at_))});
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
      if (!Contains(expression_.names_, name)) expression_.names_.push_back(name);
      expression_.steps_.push_back({.is_name = true, .text = name});
      return {};
    }
    const Operation* function = std::ranges::find(kFunctions, name, &Operation::name);
    if (function == std::end(kFunctions)) return Refuse(fmt::format("there is no function \"{}\"", name));
    for (int i = 0; i < function->takes; ++i) {
      if (i > 0 && !Take(",")) return Refuse(fmt::format("{} takes {} values", name, function->takes));
      TRY_STATUS(Binary(0));
    }
    if (!Take(")")) return Refuse(fmt::format("{} takes {} values, then \")\"", name, function->takes));
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
  for (const auto& [operation, is_name, number, text] : steps_) {
    if (operation != nullptr) {
      const size_t first = stack.size() - static_cast<size_t>(operation->takes);
      const Value result = operation->apply(&stack[first]);
      stack.resize(first);
      stack.push_back(result);
    } else {
      stack.push_back(is_name ? lookup(text) : Value{.number = number, .text = text});
    }
  }
  return stack.back().number;
}

}  // namespace weir::predict
