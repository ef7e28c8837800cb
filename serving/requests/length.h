// Length says how many tokens prompts or answers have:
//
//   1024                       all the same
//   uniform:103-128            each number from 103 to 128 equally often
//   lognormal:900:0.8[:8192]   half of them below 900; sigma of the logarithm; none above 8192
//   empirical:trace.csv        rows of a request file, drawn at random: the input and the output of
//                              one file come from one row

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/requests/request.h"
#include "sim/base/field_text.h"

namespace stepsim {

enum class LengthKind { kFixed, kUniform, kLognormal, kEmpirical };

struct Length {
  LengthKind kind = LengthKind::kFixed;
  std::int32_t low = 1;   // the length; the least; the median
  std::int32_t high = 1;  // the most
  double sigma = 0;
  std::string file{};
};

template <>
struct Text<Length> {
  static std::string accepts() {
    return "a number of tokens, uniform:LOW-HIGH, lognormal:MEDIAN:SIGMA[:MOST] or "
           "empirical:FILE.csv";
  }
  static std::optional<Length> read(std::string_view text);
  static std::string write(const Length& length);
  static std::string hint(std::string_view text) { return hint_for_whole_number(text); }
};

// Draws a length for each request. `rows` are the lengths of the file of an empirical one. `use`
// tells inputs from outputs.
class LengthDraw {
 public:
  LengthDraw(const Length& length, std::uint64_t seed, bool is_input,
             std::vector<std::int32_t> rows);
  std::int32_t of(std::uint64_t request) const;

 private:
  Length length_;
  std::uint64_t seed_;
  bool is_input_;
  std::vector<std::int32_t> rows_;
};

}  // namespace stepsim
