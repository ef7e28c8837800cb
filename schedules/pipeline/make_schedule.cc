#include "schedules/pipeline/make_schedule.h"

#include "schedules/pipeline/orders/breadth_first.h"
#include "schedules/pipeline/orders/chimera.h"
#include "schedules/pipeline/orders/controllable_memory.h"
#include "schedules/pipeline/orders/dual_pipe.h"
#include "schedules/pipeline/orders/gpipe.h"
#include "schedules/pipeline/orders/hanayo.h"
#include "schedules/pipeline/orders/interleaved.h"
#include "schedules/pipeline/orders/naive.h"
#include "schedules/pipeline/orders/one_forward_one_backward.h"
#include "schedules/pipeline/orders/zero_bubble.h"
#include "schedules/pipeline/orders/zero_bubble_auto.h"
#include "schedules/pipeline/orders/zero_bubble_v.h"

namespace stepsim {

StageCosts costs_of(const ScheduleRequest& request) {
  if (request.stage_costs.empty()) return request.costs;
  return request.stage_costs;
}

PipelineSchedule make_schedule(const ScheduleRequest& request) {
  const auto stages = static_cast<std::int32_t>(request.stages);
  const auto microbatches = static_cast<std::int32_t>(request.microbatches);
  const auto chunks =
      static_cast<std::int32_t>(request.chunks.value_or(default_chunks(request.name)));
  const auto interleaved_shape = [&] {
    const std::int64_t group =
        request.microbatch_group ? *request.microbatch_group
                                 : *default_microbatch_group(request.stages, request.microbatches);
    return InterleavedShape{stages, microbatches, chunks, static_cast<std::int32_t>(group)};
  };
  const ActivationMemory memory = request.memory.value_or(ActivationMemory{});
  switch (request.name) {
    case ScheduleName::kNaive:
      return naive(stages);
    case ScheduleName::kNaiveSequential:
      return naive_sequential(stages, microbatches);
    case ScheduleName::kGPipe:
      return gpipe(stages, microbatches);
    case ScheduleName::kGPipeLifo:
      return gpipe_lifo(stages, microbatches);
    case ScheduleName::kOneForwardOneBackward:
      return one_forward_one_backward(stages, microbatches);
    case ScheduleName::kEagerOneForwardOneBackward:
      return eager_one_forward_one_backward(stages, microbatches);
    case ScheduleName::kInterleaved:
      return interleaved_1f1b(interleaved_shape());
    case ScheduleName::kBreadthFirst:
      return breadth_first(stages, microbatches, chunks);
    case ScheduleName::kBreadthFirstLifo:
      return breadth_first_lifo(stages, microbatches, chunks);
    case ScheduleName::kZeroBubbleH1:
      return zb_h1(stages, microbatches);
    case ScheduleName::kZeroBubbleH1QuickStart:
      return zb_h1_quickstart(stages, microbatches);
    case ScheduleName::kZeroBubbleH2:
      return zb_h2(stages, microbatches);
    case ScheduleName::kZeroBubbleAuto1P:
      return zb_auto(stages, microbatches, costs_of(request),
                     request.memory_limit.value_or(request.stages), memory);
    case ScheduleName::kZeroBubbleAuto2P:
      return zb_auto(stages, microbatches, costs_of(request),
                     request.memory_limit.value_or(2 * request.stages), memory);
    case ScheduleName::kInterleavedZeroBubble:
      return interleaved_zb1p(interleaved_shape());
    case ScheduleName::kZeroBubbleVHand:
      return zbv_hand(stages, microbatches);
    case ScheduleName::kZeroBubbleVAuto:
      return zbv_auto(stages, microbatches, median_stage(costs_of(request)),
                      request.memory_limit.value_or(2 * request.stages));
    case ScheduleName::kVHalf:
      return v_half(stages, microbatches);
    case ScheduleName::kVMin:
      return v_min(stages, microbatches);
    case ScheduleName::kDualPipe:
      return dualpipe(stages, microbatches);
    case ScheduleName::kDualPipeV:
      return dualpipev(stages, microbatches);
    case ScheduleName::kChimera:
      return chimera(stages, microbatches);
    case ScheduleName::kHanayo:
      return hanayo(stages, microbatches, chunks);
  }
  return {};
}

}  // namespace stepsim
