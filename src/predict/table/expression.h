// Small formulas over the columns of a row: what a SPEC says of work, bytes and the like.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::predict {

// Text, a number, or nothing (unknown). A cell of a table is all three: its text, and its number if it is
// one.
struct Value {
  std::optional<double> number;
  std::string_view text;  // borrowed from the row or the expression
};

// An expression as a program for a stack machine. A value: immutable, so shared between threads.
//
//   2 * work / peak     + - * / ^ on numbers; what is unknown makes the result unknown, as does x / 0 and
//                       the logarithm of what is not above 0
//   a ?? b              b where a is unknown
//   a == 'x', !=, <, <=, >, >=, not, and, or      1 or 0, in this order of binding; == and != compare texts
//                       where one side is in quotes (an unknown cell is the text '')
//   if(c, a, b) log(x) exp(x) sqrt(x) abs(x) floor(x) ceil(x) min(a, b) max(a, b)
class Expression {
 public:
  // kInvalidArgument tells the position (from 1) in `text`. At most 4 KiB, 64 levels.
  static Result<Expression> Parse(std::string_view text);

  using Lookup = std::function<Value(std::string_view name)>;
  // The number, if it is known and finite. `lookup` gives the value of a column by name.
  std::optional<double> Evaluate(const Lookup& lookup) const;

  const std::string& text() const { return text_; }
  // The columns it names, in order of appearance, each once.
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend class ExpressionParser;
  // A value, or an operation on the last values of the stack.
  struct Operation;
  struct Step {
    const Operation* operation = nullptr;
    bool is_name = false;  // otherwise a text, or a number
    std::optional<double> number;
    std::string text;
  };

  std::string text_;
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

}  // namespace weir::predict
