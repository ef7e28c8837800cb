#include "schedules/pipeline/bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stepsim {

BubbleEntry::BubbleEntry(const BubbleNumbers& numbers, std::string text, std::string source)
    : n_(numbers), formula_{.text = std::move(text), .source = std::move(source)} {}

BubbleEntry&& BubbleEntry::value(std::int64_t numerator, std::int64_t denominator) && {
  formula_.numerator = numerator;
  formula_.denominator = denominator;
  return std::move(*this);
}

BubbleEntry&& BubbleEntry::of_span() && {
  formula_.measure = BubbleMeasure::kSpan;
  return std::move(*this);
}

BubbleEntry&& BubbleEntry::needs(bool holds, std::string condition) && {
  if (!holds) formula_.broken.push_back(std::move(condition));
  return std::move(*this);
}

BubbleEntry&& BubbleEntry::needs_free_sends() && {
  return std::move(*this).needs(n_.l == 0 || n_.p == 1,
                                fmt::format("sends must be free, take {}", n_.l));
}

BubbleEntry&& BubbleEntry::needs_equal_times() && {
  return std::move(*this).needs(
      n_.f == n_.b && n_.f == n_.w,
      fmt::format("f, b and w must be equal, are {}, {} and {}", n_.f, n_.b, n_.w));
}

BubbleEntry&& BubbleEntry::needs_short_weight() && {
  return std::move(*this).needs(
      n_.w <= std::min(n_.f, n_.b),
      fmt::format("w must be at most f and b, is {} to {} and {}", n_.w, n_.f, n_.b));
}

BubbleEntry&& BubbleEntry::needs_microbatches(std::int64_t least, const char* rule) && {
  return std::move(*this).needs(
      n_.m >= least, fmt::format("M must be at least {} = {}, is {}", rule, least, n_.m));
}

BubbleEntry&& BubbleEntry::needs_own_memory() && {
  return std::move(*this).needs(n_.has_own_memory, "the memory limit must be the schedule's own");
}

BubbleFormula BubbleEntry::take() && {
  if (formula_.numerator < 0) {
    formula_.broken.emplace_back("the formula gives a bubble below 0, which cannot be");
  }
  return std::move(formula_);
}

}  // namespace stepsim
