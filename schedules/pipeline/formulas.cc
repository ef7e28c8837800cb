#include "schedules/pipeline/formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stepsim {
namespace {

// Collects the formula of one request; each condition is one line where it is used.
class Row {
 public:
  Row(const ScheduleRequest& request, std::string text, std::string source)
      : request_(request), formula_{.text = std::move(text), .source = std::move(source)} {}

  Row&& value(std::int64_t numerator, std::int64_t denominator = 1) && {
    formula_.numerator = numerator;
    formula_.denominator = denominator;
    return std::move(*this);
  }
  Row&& of_span() && {
    formula_.measure = BubbleMeasure::kSpan;
    return std::move(*this);
  }
  Row&& needs(bool holds, std::string condition) && {
    if (!holds) formula_.broken.push_back(std::move(condition));
    return std::move(*this);
  }
  Row&& needs_free_sends() && {
    return std::move(*this).needs(request_.costs.send == 0 || request_.stages == 1,
                                  fmt::format("sends must be free, take {}", request_.costs.send));
  }
  Row&& needs_equal_times() && {
    const PipelineCosts& costs = request_.costs;
    return std::move(*this).needs(
        costs.forward == costs.backward_input && costs.forward == costs.backward_weight,
        fmt::format("f, b and w must be equal, are {}, {} and {}", costs.forward,
                    costs.backward_input, costs.backward_weight));
  }
  Row&& needs_short_weight() && {
    const PipelineCosts& costs = request_.costs;
    return std::move(*this).needs(
        costs.backward_weight <= std::min(costs.forward, costs.backward_input),
        fmt::format("w must be at most f and b, is {} to {} and {}", costs.backward_weight,
                    costs.forward, costs.backward_input));
  }
  Row&& needs_microbatches(std::int64_t least, const char* rule) && {
    return std::move(*this).needs(
        request_.microbatches >= least,
        fmt::format("M must be at least {} = {}, is {}", rule, least, request_.microbatches));
  }
  Row&& needs_own_memory() && {
    return std::move(*this).needs(!request_.memory_limit && !request_.memory,
                                  "the memory limit must be the schedule's own");
  }
  BubbleFormula take() && { return std::move(formula_); }

 private:
  const ScheduleRequest& request_;
  BubbleFormula formula_;
};

constexpr const char* kZeroBubblePaper = "Qi et al., arXiv 2401.10241";
constexpr const char* kDualPipeReadme = "DeepSeek, DualPipe's README; arXiv 2412.19437";
constexpr const char* kControllableMemory = "Qi et al., arXiv 2405.15362";

// What the published round figure of V-Half and V-Min is with equal times and M >= 2 P, in times of
// a chunk.
std::string exact_v(const ScheduleRequest& request) {
  const std::int64_t p = request.stages;
  const char* rule = nullptr;
  std::int64_t exact = 0;
  if (request.name == ScheduleName::kVHalf) {
    rule = p == 2 ? "1" : p % 2 == 0 ? "3 P - 7" : "3 P - 4";
    exact = p == 2 ? 1 : p % 2 == 0 ? 3 * p - 7 : 3 * p - 4;
  } else {
    rule = p % 3 == 0 ? "4 P - 7" : "4 P - 5";
    exact = p % 3 == 0 ? 4 * p - 7 : 4 * p - 5;
  }
  return fmt::format(
      "the figure is for many stages; with f = b = w, free sends and M >= 2 P it is "
      "exactly {} = {} times f",
      rule, exact);
}

BubbleFormula chimera_formula(const ScheduleRequest& request) {
  const PipelineCosts& costs = request.costs;
  const std::int64_t p = request.stages;
  return Row(request,
             "(P - 2) B: (P - 2)/(2 M + P - 2) of the whole for F = B, "
             "(P - 2)/(3 M/2 + P - 2) for B = 2 F",
             "Li and Hoefler, arXiv 2107.06925")
      .value((p - 2) * costs.backward())
      .needs(costs.forward <= costs.backward(),
             fmt::format("F must be at most B, is {} to {}", costs.forward, costs.backward()))
      .needs(request.microbatches % p == 0,
             fmt::format("M must be a multiple of P, is {} to {}", request.microbatches, p))
      .needs(request.microbatches == p || costs.forward == costs.backward(),
             fmt::format("with M > P, F must equal B (each further unit of P micro-batches adds "
                         "(P - 2)(B - F) where forwards are not doubled), is {} to {}",
                         costs.forward, costs.backward()))
      .needs_free_sends()
      .take();
}

BubbleFormula breadth_first_formula(const ScheduleRequest& request) {
  const PipelineCosts& costs = request.costs;
  const std::int64_t p = request.stages;
  const std::int64_t m = request.microbatches;
  // The first micro-batch is through its P ranks before rank 0 needs it for the next chunk.
  const auto is_there = [&](std::int64_t time) {
    return m * time >= p * (time + (p == 1 ? 0 : costs.send));
  };
  const bool is_looped = request.chunks.value_or(2) > 1;
  return Row(request, "(P - 1)(f + b + w + 2 L)", "Lamy-Poirier, arXiv 2211.05953")
      .value((p - 1) * (costs.all() + 2 * costs.send))
      .needs(!is_looped || (is_there(costs.forward) && is_there(costs.backward())),
             fmt::format("M must be at least P (1 + L/f) and P (1 + L/B), so that a chunk's first "
                         "micro-batch is back in time for the next chunk, is {}",
                         m))
      .take();
}

}  // namespace

std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request) {
  const PipelineCosts& costs = request.costs;
  const std::int64_t p = request.stages;
  const std::int64_t m = request.microbatches;
  const std::int64_t sends = 2 * costs.send;
  const std::int64_t f = costs.forward;
  const std::int64_t b = costs.backward_input;
  const std::int64_t w = costs.backward_weight;
  const auto row = [&](const char* text, const char* source) { return Row(request, text, source); };
  switch (request.name) {
    case ScheduleName::kNaive:
    case ScheduleName::kNaiveSequential:
      return row("M (P - 1)(F + B + 2 L)", "definition")
          .value(m * (p - 1) * (costs.all() + sends))
          .take();
    case ScheduleName::kGPipe:
    case ScheduleName::kGPipeLifo:
      return row("(P - 1)(F + B + 2 L)", "Huang et al., arXiv 1811.06965")
          .value((p - 1) * (costs.all() + sends))
          .take();
    case ScheduleName::kOneForwardOneBackward:
      return row("(P - 1)(F + B + 2 L)", "Narayanan et al., arXiv 2104.04473")
          .value((p - 1) * (costs.all() + sends))
          .needs(costs.send == 0 || p == 1 || m == 1,
                 fmt::format("sends must be free, take {}: only P - r micro-batches are in flight, "
                             "so that each round trip of 2 (P - 1) sends holds up P of them",
                             costs.send))
          .take();
    case ScheduleName::kEagerOneForwardOneBackward:
      return row("(P - 1)(F + B + 2 L)", "Zhuang et al., arXiv 2211.05322")
          .value((p - 1) * (costs.all() + sends))
          .needs(p == 1 || sends <= costs.all(),
                 fmt::format("2 L must be at most F + B, is {} to {}", sends, costs.all()))
          .take();
    case ScheduleName::kInterleaved:
      return row("(P - 1)(f + b + w)", "Narayanan et al., arXiv 2104.04473")
          .value((p - 1) * costs.all())
          .needs_free_sends()
          .take();
    case ScheduleName::kBreadthFirst:
    case ScheduleName::kBreadthFirstLifo:
      return breadth_first_formula(request);
    case ScheduleName::kZeroBubbleH1:
    case ScheduleName::kZeroBubbleH1QuickStart:
      return row("(P - 1)(f + b - w)", kZeroBubblePaper)
          .value((p - 1) * (f + b - w))
          .needs_short_weight()
          .needs_free_sends()
          .needs_microbatches(p, "P")
          .take();
    case ScheduleName::kZeroBubbleH2:
      return row("(P - 1)(f + b + 2 L - 2 w)", kZeroBubblePaper)
          .value((p - 1) * (f + b + sends - 2 * w))
          .of_span()
          .needs_short_weight()
          .needs(p == 1 || sends <= f + b,
                 fmt::format("2 L must be at most f + b, is {} to {}", sends, f + b))
          .take();
    case ScheduleName::kZeroBubbleAuto1P:
      return row("(P - 1)(f + b - w)", kZeroBubblePaper)
          .value((p - 1) * (f + b - w))
          .needs_equal_times()
          .needs_free_sends()
          .needs_microbatches(2 * p, "2 P")
          .needs_own_memory()
          .take();
    case ScheduleName::kZeroBubbleAuto2P:
      return row("0", kZeroBubblePaper)
          .of_span()
          .needs_equal_times()
          .needs_free_sends()
          .needs_microbatches(2 * p, "2 P")
          .needs_own_memory()
          .take();
    case ScheduleName::kInterleavedZeroBubble:
      return row("(P - 1)(f + b - w)", "PyTorch, ScheduleInterleavedZeroBubble; arXiv 2401.10241")
          .value((p - 1) * (f + b - w))
          .needs_short_weight()
          .needs_free_sends()
          .needs_microbatches(p, "P")
          .take();
    case ScheduleName::kZeroBubbleVHand:
    case ScheduleName::kZeroBubbleVAuto:
      return row("0", kZeroBubblePaper)
          .of_span()
          .needs_equal_times()
          .needs_free_sends()
          .needs_microbatches(2 * p - 1, "2 P - 1")
          .needs_own_memory()
          .take();
    case ScheduleName::kVHalf:
      return row("half of 1F1B's: (P - 1)(f + b + w)", kControllableMemory)
          .value((p - 1) * costs.all())
          .needs(p == 1, exact_v(request))
          .take();
    case ScheduleName::kVMin:
      return row("two thirds of 1F1B's: 4/3 (P - 1)(f + b + w)", kControllableMemory)
          .value(4 * (p - 1) * costs.all(), 3)
          .needs(p == 1, exact_v(request))
          .take();
    case ScheduleName::kDualPipe:
    case ScheduleName::kDualPipeV: {
      const bool is_v = request.name == ScheduleName::kDualPipeV;
      const std::int64_t outer = is_v ? p - 1 : p / 2 - 1;
      const std::string ranks = is_v ? "(P - 1)" : "(P/2 - 1)";
      const std::string in_parts = costs.fused ? "" : " = " + ranks + "(f + 2 b - w)";
      return Row(request, ranks + "(F&B + B - 3 W)" + in_parts, kDualPipeReadme)
          .value(outer * (costs.fused_or_sum() + b - 2 * w))
          .needs(costs.fused_or_sum() == costs.all(),
                 fmt::format("F&B must be f + b + w = {}, is {}: else it saves time in the middle "
                             "too, more on ranks with more fused ops",
                             costs.all(), costs.fused_or_sum()))
          .needs(outer == 0 || f == b, fmt::format("f must equal b, is {} to {}", f, b))
          .needs(outer == 0 || w <= b, fmt::format("w must be at most b, is {} to {}", w, b))
          .needs_free_sends()
          .take();
    }
    case ScheduleName::kChimera:
      return chimera_formula(request);
    case ScheduleName::kHanayo:
      break;
  }
  return std::nullopt;
}

}  // namespace stepsim
