// Expression is arithmetic as a person writes it.
//
//   const Expression area("D * F / max(X, Y)");
//   area.value({{"D", 8192}, {"F", 32768}, {"X", 4}, {"Y", 8}})
//
// It has numbers, symbols (letters, digits, underscore), + - * / ^, parentheses, min and max of any
// number of arguments, sqrt, ceil, floor, log2, exp, lambert_w (the branch from -1 / e on) and
// erlang_b(load, servers). The outermost level may be a comparison
// < <= > >=, which is 1 or 0. ^ binds tighter than a minus sign before it and is right-associative.
// Values are doubles. ceil and floor ignore an error of 1e-9 of the value, so that ceil(8 * 0.125)
// is 1.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

using FormulaValues = std::map<std::string, double, std::less<>>;  // by symbol

class Expression {
 public:
  // Throws std::logic_error if the text is no expression: expressions are part of the program.
  explicit Expression(std::string_view text);

  // The result is not finite if there is none: 1 / 0, sqrt(-1). REQUIRES: values has every symbol.
  double value(const FormulaValues& values) const;

  const std::vector<std::string>& symbols() const { return symbols_; }  // each once, in order

 private:
  // Postfix: operands first. kNumber pushes `number`, kSymbol the value of `symbol`; the others
  // take `arguments` values from the stack and push one.
  enum class Operation {
    kNumber,
    kSymbol,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kPower,
    kNegate,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kMin,
    kMax,
    kSqrt,
    kCeil,
    kFloor,
    kLog2,
    kExp,
    kLambertW,
    kErlangB
  };
  struct Step {
    Operation operation;
    double number = 0;
    std::size_t symbol = 0;
    std::size_t arguments = 0;
  };
  class Parser;

  static double apply(Operation operation, const double* arguments, std::size_t count);

  std::vector<Step> steps_;
  std::vector<std::string> symbols_;
};

}  // namespace stepsim
