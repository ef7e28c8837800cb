// BubbleFormula is the bubble that a paper publishes for a schedule, worked out for given numbers.
// Each schedule's file in orders/ has a function that makes its formula with BubbleEntry:
//
//   BubbleFormula gpipe_bubble(const BubbleNumbers& n) {
//     return BubbleEntry(n, "(P - 1)(F + B + 2 L)", "Huang et al., arXiv 1811.06965")
//         .value((n.p - 1) * (n.all() + 2 * n.l))
//         .take();
//   }
//
// Values are exact fractions in the unit of the times. Conditions come from the papers if they
// state them, otherwise from replays (see the header of each schedule). A formula whose conditions
// fail may still be right by chance. Its value may also be below 0 (zero bubble with a long w); a
// condition then says so.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepsim {

// The idle time that a paper quotes. kMakespan: of the whole pipeline, from the earliest start to
// the latest end. kSpan: of one rank, between its own first start and last end.
enum class BubbleMeasure : std::uint8_t { kMakespan, kSpan };

struct BubbleFormula {
  std::string text{};
  std::string source{};
  BubbleMeasure measure = BubbleMeasure::kMakespan;
  std::int64_t numerator = 0;  // value = numerator / denominator
  std::int64_t denominator = 1;
  std::vector<std::string> broken{};  // conditions that these numbers violate, with the numbers

  // Returns whether a replay gives exactly this value.
  bool holds() const { return broken.empty(); }
};

// BubbleNumbers are the inputs of the formulas, named as in the papers. Times may have any unit.
struct BubbleNumbers {
  std::int64_t p = 1;                   // ranks
  std::int64_t m = 1;                   // micro-batches
  std::int64_t v = 1;                   // chunks a rank
  std::int64_t f = 1, b = 1, w = 1;     // forward, input gradient and weight gradient of a chunk
  std::int64_t l = 0;                   // one send
  std::optional<std::int64_t> fused{};  // a forward fused with a full backward; unset: their sum
  bool has_own_memory = true;           // no memory limit other than the schedule's own

  std::int64_t backward() const { return b + w; }
  std::int64_t all() const { return f + b + w; }
};

// BubbleEntry builds the formula of one schedule: text and source, the value, and each condition
// under which a replay gives exactly that value.
class BubbleEntry {
 public:
  BubbleEntry(const BubbleNumbers& numbers, std::string text, std::string source);

  BubbleEntry&& value(std::int64_t numerator, std::int64_t denominator = 1) &&;
  BubbleEntry&& of_span() &&;  // sets BubbleMeasure::kSpan
  BubbleEntry&& needs(bool holds, std::string condition) &&;
  BubbleEntry&& needs_free_sends() &&;
  BubbleEntry&& needs_equal_times() &&;
  BubbleEntry&& needs_short_weight() &&;
  BubbleEntry&& needs_microbatches(std::int64_t least, const char* rule) &&;
  BubbleEntry&& needs_own_memory() &&;
  BubbleFormula take() &&;

 private:
  BubbleNumbers n_;
  BubbleFormula formula_;
};

}  // namespace stepsim
