#include "books/formulas/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// w e^w = x with w >= -1, by Halley's method from the series at the branch point. NaN below -1 / e.
double lambert_w(double x) {
  constexpr double kE = 2.718281828459045;
  constexpr int kMostSteps = 60;
  const double above = 2 * (kE * x + 1);
  if (!(above >= 0)) return std::numeric_limits<double>::quiet_NaN();
  const double root = std::sqrt(above);
  double w = x < 1 ? -1 + root - root * root / 3 + 11 * root * root * root / 72 : std::log(1 + x);
  for (int i = 0; i < kMostSteps; ++i) {
    const double e = std::exp(w);
    const double off = w * e - x;
    const double slope = e * (w + 1) - (w + 2) * off / (2 * w + 2);
    if (off == 0 || slope == 0 || !std::isfinite(slope)) break;
    const double change = off / slope;
    w -= change;
    if (std::abs(change) <= 1e-16 * std::abs(w)) break;
  }
  return w;
}

// The share of arrivals that find all servers busy and leave, by Erlang's recurrence.
double erlang_b(double load, double servers) {
  constexpr double kMostServers = 1e6;
  if (!(servers >= 0 && servers <= kMostServers)) return std::numeric_limits<double>::quiet_NaN();
  double blocked = 1;
  for (double n = 1; n <= servers; ++n) blocked = load * blocked / (n + load * blocked);
  return blocked;
}

}  // namespace

// A recursive-descent parser with one function per level of precedence. Each adds its steps in
// postfix order.
class Expression::Parser {
 public:
  Parser(std::string_view text, Expression& expression) : text_(text), expression_(expression) {}

  void parse() {
    comparison();
    if (!rest().empty()) fail("nothing more");
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::logic_error("formula \"" + std::string(text_) + "\": expected " + expected + " at " +
                           std::to_string(position_));
  }

  std::string_view rest() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return text_.substr(position_);
  }

  bool accept(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(std::string(token));
  }

  void add(Operation operation, std::size_t arguments) {
    expression_.steps_.push_back({.operation = operation, .arguments = arguments});
  }

  void comparison() {
    sum();
    constexpr std::array<std::pair<std::string_view, Operation>, 4> kComparisons = {
        {{"<=", Operation::kLessEqual},
         {">=", Operation::kGreaterEqual},
         {"<", Operation::kLess},
         {">", Operation::kGreater}}};
    for (const auto& [token, operation] : kComparisons) {
      if (!accept(token)) continue;
      sum();
      add(operation, 2);
      return;
    }
  }

  void sum() {
    product();
    while (true) {
      const bool plus = accept("+");
      if (!plus && !accept("-")) return;
      product();
      add(plus ? Operation::kAdd : Operation::kSubtract, 2);
    }
  }

  void product() {
    sign();
    while (true) {
      const bool times = accept("*");
      if (!times && !accept("/")) return;
      sign();
      add(times ? Operation::kMultiply : Operation::kDivide, 2);
    }
  }

  void sign() {
    if (accept("-")) {
      sign();
      add(Operation::kNegate, 1);
      return;
    }
    atom();
    if (accept("^")) {
      sign();
      add(Operation::kPower, 2);
    }
  }

  void atom() {
    if (accept("(")) {
      sum();
      expect(")");
      return;
    }
    const std::string_view text = rest();
    if (text.empty()) fail("a value");
    if (is_digit(text.front())) {
      number(text);
    } else {
      name(text);
    }
  }

  void number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) fail("a number");
    position_ += static_cast<std::size_t>(end - text.data());
    expression_.steps_.push_back({.operation = Operation::kNumber, .number = value});
  }

  void name(std::string_view text) {
    const auto is_part = [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    };
    const auto end = std::find_if_not(text.begin(), text.end(), is_part);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    if (word.empty()) fail("a value");
    position_ += word.size();
    if (accept("(")) {
      call(word);
      return;
    }
    auto& symbols = expression_.symbols_;
    auto found = std::find(symbols.begin(), symbols.end(), word);
    if (found == symbols.end()) found = symbols.emplace(symbols.end(), word);
    expression_.steps_.push_back({.operation = Operation::kSymbol,
                                  .symbol = static_cast<std::size_t>(found - symbols.begin())});
  }

  void call(std::string_view function) {
    constexpr std::array<std::pair<std::string_view, Operation>, 9> kFunctions = {
        {{"min", Operation::kMin},
         {"max", Operation::kMax},
         {"sqrt", Operation::kSqrt},
         {"ceil", Operation::kCeil},
         {"floor", Operation::kFloor},
         {"log2", Operation::kLog2},
         {"exp", Operation::kExp},
         {"lambert_w", Operation::kLambertW},
         {"erlang_b", Operation::kErlangB}}};
    const auto* const known =
        std::find_if(kFunctions.begin(), kFunctions.end(),
                     [&](const auto& candidate) { return candidate.first == function; });
    if (known == kFunctions.end()) fail("a function");
    std::size_t arguments = 1;
    sum();
    while (accept(",")) {
      sum();
      ++arguments;
    }
    expect(")");
    const bool takes_many = known->second == Operation::kMin || known->second == Operation::kMax;
    const std::size_t wanted = known->second == Operation::kErlangB ? 2 : 1;
    if (!takes_many && arguments != wanted) fail(wanted == 1 ? "one argument" : "two arguments");
    add(known->second, arguments);
  }

  std::string_view text_;
  Expression& expression_;
  std::size_t position_ = 0;
};

Expression::Expression(std::string_view text) {
  Parser(text, *this).parse();
}

double Expression::apply(Operation operation, const double* arguments, std::size_t count) {
  const double first = arguments[0];
  const double second = arguments[count - 1];
  const double slack = std::abs(first) * 1e-9;
  switch (operation) {
    case Operation::kAdd:
      return first + second;
    case Operation::kSubtract:
      return first - second;
    case Operation::kMultiply:
      return first * second;
    case Operation::kDivide:
      return first / second;
    case Operation::kPower:
      return std::pow(first, second);
    case Operation::kNegate:
      return -first;
    case Operation::kLess:
      return first < second ? 1 : 0;
    case Operation::kLessEqual:
      return first <= second ? 1 : 0;
    case Operation::kGreater:
      return first > second ? 1 : 0;
    case Operation::kGreaterEqual:
      return first >= second ? 1 : 0;
    case Operation::kMin:
      return *std::min_element(arguments, arguments + count);
    case Operation::kMax:
      return *std::max_element(arguments, arguments + count);
    case Operation::kSqrt:
      return std::sqrt(first);
    case Operation::kCeil:
      return std::ceil(first - slack);
    case Operation::kFloor:
      return std::floor(first + slack);
    case Operation::kLog2:
      return std::log2(first);
    case Operation::kExp:
      return std::exp(first);
    case Operation::kLambertW:
      return lambert_w(first);
    case Operation::kErlangB:
      return erlang_b(first, second);
    case Operation::kNumber:
    case Operation::kSymbol:
      break;
  }
  throw std::logic_error("not an operation");
}

double Expression::value(const FormulaValues& values) const {
  std::vector<double> stack;
  stack.reserve(steps_.size());
  for (const Step& step : steps_) {
    if (step.operation == Operation::kNumber) {
      stack.push_back(step.number);
    } else if (step.operation == Operation::kSymbol) {
      stack.push_back(values.at(symbols_[step.symbol]));
    } else {
      const std::size_t base = stack.size() - step.arguments;
      const double result = apply(step.operation, stack.data() + base, step.arguments);
      stack.resize(base);
      stack.push_back(result);
    }
  }
  return stack.back();
}

}  // namespace stepsim
