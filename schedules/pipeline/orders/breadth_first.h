// Breadth-first pipeline, "looped BFS" (Lamy-Poirier, arXiv 2211.05953): every rank holds V chunks
// and runs each chunk for all micro-batches before the next one.
//
//   rank 0  F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 ....  BW0.1 .. BW3.1 BW0.0 .. BW3.0
//   rank 1  .... F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1  BW0.1 .. BW3.1 BW0.0 .. BW3.0
//
// breadth_first       backward in the order of forwards (Fast-LLM, maintained by the author)
// breadth_first_lifo  backward in reverse (PyTorch's ScheduleLoopedBFS)
//
// Chunk c of rank r is stage c P + r. For M >= P and free sends, the bubble is (P - 1)(f + b + w)
// in times of a chunk, 1/V of GPipe's. M V chunks are in flight on every rank. In return, the
// weights of a chunk are used only once per step, which suits fully sharded parameters. Any M >= 1
// is allowed.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches >= 1, chunks >= 1.
PipelineSchedule breadth_first(std::int32_t stages, std::int32_t microbatches, std::int32_t chunks);
PipelineSchedule breadth_first_lifo(std::int32_t stages, std::int32_t microbatches,
                                    std::int32_t chunks);

// Returns the published bubble (bubble.h).
BubbleFormula breadth_first_bubble(const BubbleNumbers& n);

}  // namespace stepsim
