#include "predict/table/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace weir::predict {

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
  using Op = Expression::Op;
  struct Infix {
    std::string_view sign;
    Op op;
    int level;
  };
  // Longer signs before their own beginnings.
  static constexpr Infix kInfix[] = {
      {"or", Op::kOr, 0},       {"and", Op::kAnd, 1},      {"==", Op::kEqual, 2},
      {"!=", Op::kNotEqual, 2}, {"<=", Op::kLessEqual, 2}, {">=", Op::kGreaterEqual, 2},
      {"<", Op::kLess, 2},      {">", Op::kGreater, 2},    {"??", Op::kElse, 3},
      {"+", Op::kAdd, 4},       {"-", Op::kSubtract, 4},   {"*", Op::kMultiply, 5},
      {"/", Op::kDivide, 5}};
  static constexpr int kHighest = 5, kComparison = 2;
  struct Function {
    std::string_view name;
    Op op;
    int arguments;
  };
  static constexpr Function kFunctions[] = {
      {"if", Op::kIf, 3},     {"log", Op::kLog, 1}, {"exp", Op::kExp, 1},
      {"sqrt", Op::kSqrt, 1}, {"abs", Op::kAbs, 1}, {"floor", Op::kFloor, 1},
      {"ceil", Op::kCeil, 1}, {"min", Op::kMin, 2}, {"max", Op::kMax, 2}};

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

  void Emit(Op op, double number = 0, std::string text = {}) {
    expression_.steps_.push_back({op, number, std::move(text)});
  }

  Status Binary(int level) {
    if (level > kHighest) return Unary();
    if (level == 0 && ++depth_ > 64) return Refuse("nested deeper than 64 levels");
    if (level == kComparison && Take("not")) return Not();
    TRY_STATUS(Binary(level + 1));
    while (const Infix* infix = TakeInfix(level)) {
      TRY_STATUS(Binary(level + 1));
      Emit(infix->op);
      if (level == kComparison && TakeInfix(level))
        return Refuse("comparisons are not chained: join two of them by and");
    }
    if (level == 0) --depth_;
    return {};
  }

  const Infix* TakeInfix(int level) {
    for (const Infix& infix : kInfix) {
      if (infix.level == level && Take(infix.sign)) return &infix;
    }
    return nullptr;
  }

  // Negates the whole comparison, as in Python: not a == b is not (a == b).
  Status Not() {
    if (++depth_ > 64) return Refuse("nested deeper than 64 levels");
    TRY_STATUS(Binary(kComparison));
    Emit(Op::kNot);
    --depth_;
    return {};
  }

  // A power binds before a minus in front of it, and from the right: -2^2 is -4, 2^3^2 is 512.
  Status Unary() {
    if (++depth_ > 64) return Refuse("nested deeper than 64 levels");
    if (Take("-")) {
      TRY_STATUS(Unary());
      Emit(Op::kNegate);
    } else {
      TRY_STATUS(Primary());
      if (Take("^")) {
        TRY_STATUS(Unary());
        Emit(Op::kPower);
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
    Emit(Op::kText, 0, std::string(text_.substr(at_, end - at_)));
    at_ = end + 1;
    return {};
  }

  Status Number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Refuse("this is not a number");
    at_ = static_cast<size_t>(end - text_.data());
    Emit(Op::kNumber, value);
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
      Emit(Op::kName, 0, name);
      return {};
    }
    const auto* function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == std::end(kFunctions)) return Refuse(fmt::format("there is no function \"{}\"", name));
    for (int i = 0; i < function->arguments; ++i) {
      if (i > 0 && !Take(",")) return Refuse(fmt::format("{} takes {} values", name, function->arguments));
      TRY_STATUS(Binary(0));
    }
    if (!Take(")")) return Refuse(fmt::format("{} takes {} values, then \")\"", name, function->arguments));
    Emit(function->op);
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Expression expression_;
};

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

}  // namespace

Result<Expression> Expression::Parse(std::string_view text) { return ExpressionParser(text).Parse(); }

Value Expression::ApplyOne(Op op, const Value& a) {
  if (op == Op::kNot) return Known(IsTrue(a) ? 0 : 1);
  if (!a.number) return {};
  const double x = *a.number;
  switch (op) {
    case Op::kNegate:
      return Known(-x);
    case Op::kLog:
      return x > 0 ? Known(std::log(x)) : Value();
    case Op::kExp:
      return Known(std::exp(x));
    case Op::kSqrt:
      return x >= 0 ? Known(std::sqrt(x)) : Value();
    case Op::kAbs:
      return Known(std::abs(x));
    case Op::kFloor:
      return Known(std::floor(x));
    default:
      return Known(std::ceil(x));
  }
}

Value Expression::Apply(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kElse:
      return a.number ? a : b;
    case Op::kEqual:
      return Known(SameText(a, b) ? 1 : 0);
    case Op::kNotEqual:
      return Known(SameText(a, b) ? 0 : 1);
    case Op::kAnd:
      return Known(IsTrue(a) && IsTrue(b) ? 1 : 0);
    case Op::kOr:
      return Known(IsTrue(a) || IsTrue(b) ? 1 : 0);
    default:
      break;
  }
  if (!a.number || !b.number) return {};
  const double x = *a.number, y = *b.number;
  switch (op) {
    case Op::kAdd:
      return Known(x + y);
    case Op::kSubtract:
      return Known(x - y);
    case Op::kMultiply:
      return Known(x * y);
    case Op::kDivide:
      return y == 0 ? Value() : Known(x / y);
    case Op::kPower:
      return Known(std::pow(x, y));
    case Op::kLess:
      return Known(x < y ? 1 : 0);
    case Op::kLessEqual:
      return Known(x <= y ? 1 : 0);
    case Op::kGreater:
      return Known(x > y ? 1 : 0);
    case Op::kGreaterEqual:
      return Known(x >= y ? 1 : 0);
    case Op::kMin:
      return Known(std::min(x, y));
    default:
      return Known(std::max(x, y));
  }
}

std::optional<double> Expression::Evaluate(const Lookup& lookup) const {
  std::vector<Value> stack;
  const auto pop = [&] {
    const Value value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const Step& step : steps_) {
    switch (step.op) {
      case Op::kNumber:
        stack.push_back(Known(step.number));
        break;
      case Op::kText:
        stack.push_back({.number = std::nullopt, .text = step.text});
        break;
      case Op::kName:
        stack.push_back(lookup(step.text));
        break;
      case Op::kNegate:
      case Op::kNot:
      case Op::kLog:
      case Op::kExp:
      case Op::kSqrt:
      case Op::kAbs:
      case Op::kFloor:
      case Op::kCeil: {
        const Value a = pop();
        stack.push_back(ApplyOne(step.op, a));
        break;
      }
      case Op::kIf: {
        const Value otherwise = pop(), then = pop(), condition = pop();
        stack.push_back(IsTrue(condition) ? then : otherwise);
        break;
      }
      default: {
        const Value b = pop(), a = pop();
        stack.push_back(Apply(step.op, a, b));
      }
    }
  }
  return stack.back().number;
}

}  // namespace weir::predict
