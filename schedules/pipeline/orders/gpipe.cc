#include "schedules/pipeline/orders/gpipe.h"

#include "schedules/pipeline/orders/breadth_first.h"

namespace stepsim {

// GPipe is the breadth-first schedule with one chunk per rank.
PipelineSchedule gpipe(std::int32_t stages, std::int32_t microbatches) {
  return breadth_first(stages, microbatches, 1);
}

PipelineSchedule gpipe_lifo(std::int32_t stages, std::int32_t microbatches) {
  return breadth_first_lifo(stages, microbatches, 1);
}

BubbleFormula gpipe_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(F + B + 2 L)", "Huang et al., arXiv 1811.06965")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .take();
}

}  // namespace stepsim
