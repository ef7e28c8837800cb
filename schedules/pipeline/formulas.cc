#include "schedules/pipeline/formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stepsim {
namespace {

// The numbers that formulas are made of, in the letters of the papers.
struct Numbers {
  std::int64_t p;        // ranks
  std::int64_t m;        // micro-batches
  std::int64_t f, b, w;  // of a chunk
  std::int64_t l;        // a send
  std::int64_t backward() const { return b + w; }
  std::int64_t all() const { return f + b + w; }
};

Numbers numbers_of(const ScheduleRequest& request) {
  const PipelineCosts& costs = request.costs;
  return {.p = request.stages,
          .m = request.microbatches,
          .f = costs.forward,
          .b = costs.backward_input,
          .w = costs.backward_weight,
          .l = costs.send};
}

// The entry of one schedule: what is published, its value, and under which conditions a replay
// gives just that.
class Entry : private Numbers {
 public:
  Entry(const ScheduleRequest& request, std::string text, std::string source)
      : Numbers(numbers_of(request)),
        request_(request),
        formula_{.text = std::move(text), .source = std::move(source)} {}

  Entry&& value(std::int64_t numerator, std::int64_t denominator = 1) && {
    formula_.numerator = numerator;
    formula_.denominator = denominator;
    return std::move(*this);
  }
  Entry&& of_span() && {
    formula_.measure = BubbleMeasure::kSpan;
    return std::move(*this);
  }
  Entry&& needs(bool holds, std::string condition) && {
    if (!holds) formula_.broken.push_back(std::move(condition));
    return std::move(*this);
  }
  Entry&& needs_free_sends() && {
    return std::move(*this).needs(l == 0 || p == 1, fmt::format("sends must be free, take {}", l));
  }
  Entry&& needs_equal_times() && {
    return std::move(*this).needs(
        f == b && f == w, fmt::format("f, b and w must be equal, are {}, {} and {}", f, b, w));
  }
  Entry&& needs_short_weight() && {
    return std::move(*this).needs(
        w <= std::min(f, b), fmt::format("w must be at most f and b, is {} to {} and {}", w, f, b));
  }
  Entry&& needs_microbatches(std::int64_t least, const char* rule) && {
    return std::move(*this).needs(m >= least,
                                  fmt::format("M must be at least {} = {}, is {}", rule, least, m));
  }
  Entry&& needs_own_memory() && {
    return std::move(*this).needs(!request_.memory_limit && !request_.memory,
                                  "the memory limit must be the schedule's own");
  }
  BubbleFormula take() && {
    if (formula_.numerator < 0) {
      formula_.broken.emplace_back("no bubble is less than 0: the formula says nothing here");
    }
    return std::move(formula_);
  }

 private:
  const ScheduleRequest& request_;
  BubbleFormula formula_;
};

constexpr const char* kZeroBubblePaper = "Qi et al., arXiv 2401.10241";
constexpr const char* kDualPipeReadme = "DeepSeek, DualPipe's README; arXiv 2412.19437";
constexpr const char* kControllableMemory = "Qi et al., arXiv 2405.15362";

BubbleFormula naive_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "M (P - 1)(F + B + 2 L)", "definition")
      .value(n.m * (n.p - 1) * (n.all() + 2 * n.l))
      .take();
}

BubbleFormula gpipe_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(F + B + 2 L)", "Huang et al., arXiv 1811.06965")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .take();
}

BubbleFormula one_forward_one_backward_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(F + B + 2 L)", "Narayanan et al., arXiv 2104.04473")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(n.l == 0 || n.p == 1 || n.m == 1,
             fmt::format("sends must be free, take {}: only P - r micro-batches are in flight, "
                         "so that each round trip of 2 (P - 1) sends holds up P of them",
                         n.l))
      .take();
}

BubbleFormula eager_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(F + B + 2 L)", "Zhuang et al., arXiv 2211.05322")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(n.p == 1 || 2 * n.l <= n.all(),
             fmt::format("2 L must be at most F + B, is {} to {}", 2 * n.l, n.all()))
      .take();
}

BubbleFormula interleaved_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(f + b + w)", "Narayanan et al., arXiv 2104.04473")
      .value((n.p - 1) * n.all())
      .needs_free_sends()
      .take();
}

BubbleFormula breadth_first_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  // The first micro-batch is through its P ranks before rank 0 needs it for the next chunk.
  const auto is_there = [&](std::int64_t time) {
    return n.m * time >= n.p * (time + (n.p == 1 ? 0 : n.l));
  };
  const bool is_looped = request.chunks.value_or(default_chunks(request.name)) > 1;
  return Entry(request, "(P - 1)(f + b + w + 2 L)", "Lamy-Poirier, arXiv 2211.05953")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(!is_looped || (is_there(n.f) && is_there(n.backward())),
             fmt::format("M must be at least P (1 + L/f) and P (1 + L/B), so that a chunk's first "
                         "micro-batch is back in time for the next chunk, is {}",
                         n.m))
      .take();
}

BubbleFormula zb_h1_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(f + b - w)", kZeroBubblePaper)
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_short_weight()
      .needs_free_sends()
      .needs_microbatches(n.p, "P")
      .take();
}

BubbleFormula zb_h2_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(f + b + 2 L - 2 w)", kZeroBubblePaper)
      .value((n.p - 1) * (n.f + n.b + 2 * n.l - 2 * n.w))
      .of_span()
      .needs_short_weight()
      .needs(n.p == 1 || 2 * n.l <= n.f + n.b,
             fmt::format("2 L must be at most f + b, is {} to {}", 2 * n.l, n.f + n.b))
      .take();
}

BubbleFormula zb_auto_1p_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(f + b - w)", kZeroBubblePaper)
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * n.p, "2 P")
      .needs_own_memory()
      .take();
}

BubbleFormula zb_auto_2p_entry(const ScheduleRequest& request) {
  return Entry(request, "0", kZeroBubblePaper)
      .of_span()
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * request.stages, "2 P")
      .needs_own_memory()
      .take();
}

BubbleFormula interleaved_zero_bubble_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request, "(P - 1)(f + b - w)",
               "PyTorch, ScheduleInterleavedZeroBubble; arXiv 2401.10241")
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_short_weight()
      .needs_free_sends()
      .needs_microbatches(n.p, "P")
      .take();
}

BubbleFormula zero_bubble_v_entry(const ScheduleRequest& request) {
  return Entry(request, "0", kZeroBubblePaper)
      .of_span()
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * request.stages - 1, "2 P - 1")
      .needs_own_memory()
      .take();
}

// V-Half and V-Min publish a round figure for many stages. `rule` times f is what it is exactly.
std::string exact_v(const char* rule, std::int64_t exact) {
  return fmt::format(
      "the figure is for many stages; with f = b = w, free sends and M >= 2 P it is "
      "exactly {} = {} times f",
      rule, exact);
}

BubbleFormula v_half_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  const bool is_odd = n.p % 2 != 0;
  const std::string exact = n.p == 2 ? exact_v("1", 1)
                            : is_odd ? exact_v("3 P - 4", 3 * n.p - 4)
                                     : exact_v("3 P - 7", 3 * n.p - 7);
  return Entry(request, "half of 1F1B's: (P - 1)(f + b + w)", kControllableMemory)
      .value((n.p - 1) * n.all())
      .needs(n.p == 1, exact)
      .take();
}

BubbleFormula v_min_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  const std::string exact =
      n.p % 3 == 0 ? exact_v("4 P - 7", 4 * n.p - 7) : exact_v("4 P - 5", 4 * n.p - 5);
  return Entry(request, "two thirds of 1F1B's: 4/3 (P - 1)(f + b + w)", kControllableMemory)
      .value(4 * (n.p - 1) * n.all(), 3)
      .needs(n.p == 1, exact)
      .take();
}

BubbleFormula dual_pipe_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  const bool is_v = request.name == ScheduleName::kDualPipeV;
  const std::int64_t outer = is_v ? n.p - 1 : n.p / 2 - 1;
  const std::string ranks = is_v ? "(P - 1)" : "(P/2 - 1)";
  const std::string in_parts = request.costs.fused ? "" : " = " + ranks + "(f + 2 b - w)";
  const std::int64_t fused = request.costs.fused_or_sum();
  return Entry(request, ranks + "(F&B + B - 3 W)" + in_parts, kDualPipeReadme)
      .value(outer * (fused + n.b - 2 * n.w))
      .needs(fused == n.all(),
             fmt::format("F&B must be f + b + w = {}, is {}: else it saves time in the middle "
                         "too, more on ranks with more fused ops",
                         n.all(), fused))
      .needs(outer == 0 || n.f == n.b, fmt::format("f must equal b, is {} to {}", n.f, n.b))
      .needs(outer == 0 || n.w <= n.b, fmt::format("w must be at most b, is {} to {}", n.w, n.b))
      .needs_free_sends()
      .take();
}

BubbleFormula chimera_entry(const ScheduleRequest& request) {
  const Numbers n = numbers_of(request);
  return Entry(request,
               "(P - 2) B: (P - 2)/(2 M + P - 2) of the whole for F = B, "
               "(P - 2)/(3 M/2 + P - 2) for B = 2 F",
               "Li and Hoefler, arXiv 2107.06925")
      .value((n.p - 2) * n.backward())
      .needs(n.f <= n.backward(),
             fmt::format("F must be at most B, is {} to {}", n.f, n.backward()))
      .needs(n.m % n.p == 0, fmt::format("M must be a multiple of P, is {} to {}", n.m, n.p))
      .needs(n.m == n.p || n.f == n.backward(),
             fmt::format("with M > P, F must equal B (each further unit of P micro-batches adds "
                         "(P - 2)(B - F) where forwards are not doubled), is {} to {}",
                         n.f, n.backward()))
      .needs_free_sends()
      .take();
}

// REQUIRES: stages are alike.
std::optional<BubbleFormula> entry_of(const ScheduleRequest& request) {
  switch (request.name) {
    case ScheduleName::kNaive:
    case ScheduleName::kNaiveSequential:
      return naive_entry(request);
    case ScheduleName::kGPipe:
    case ScheduleName::kGPipeLifo:
      return gpipe_entry(request);
    case ScheduleName::kOneForwardOneBackward:
      return one_forward_one_backward_entry(request);
    case ScheduleName::kEagerOneForwardOneBackward:
      return eager_entry(request);
    case ScheduleName::kInterleaved:
      return interleaved_entry(request);
    case ScheduleName::kBreadthFirst:
    case ScheduleName::kBreadthFirstLifo:
      return breadth_first_entry(request);
    case ScheduleName::kZeroBubbleH1:
    case ScheduleName::kZeroBubbleH1QuickStart:
      return zb_h1_entry(request);
    case ScheduleName::kZeroBubbleH2:
      return zb_h2_entry(request);
    case ScheduleName::kZeroBubbleAuto1P:
      return zb_auto_1p_entry(request);
    case ScheduleName::kZeroBubbleAuto2P:
      return zb_auto_2p_entry(request);
    case ScheduleName::kInterleavedZeroBubble:
      return interleaved_zero_bubble_entry(request);
    case ScheduleName::kZeroBubbleVHand:
    case ScheduleName::kZeroBubbleVAuto:
      return zero_bubble_v_entry(request);
    case ScheduleName::kVHalf:
      return v_half_entry(request);
    case ScheduleName::kVMin:
      return v_min_entry(request);
    case ScheduleName::kDualPipe:
    case ScheduleName::kDualPipeV:
      return dual_pipe_entry(request);
    case ScheduleName::kChimera:
      return chimera_entry(request);
    case ScheduleName::kHanayo:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request) {
  const StageCosts costs = costs_of(request);
  ScheduleRequest even = request;
  even.stage_costs.clear();
  even.costs = longest_stage(costs);
  std::optional<BubbleFormula> formula = entry_of(even);
  if (formula && !costs.are_even()) {
    formula->broken.insert(
        formula->broken.begin(),
        "all stages must take the same times: it is worked out with the longest");
  }
  return formula;
}

}  // namespace stepsim
