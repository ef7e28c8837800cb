// Pass is one way over the layers of a chunk with a micro-batch: the forward, the backward or a
// part of it. This header says what a pass does in a layer, in which order it visits the layers,
// and which gradients are complete after it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/lowering/stages/fully_sharded.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/pipeline.h"
#include "schedules/lowering/stages/stage.h"

namespace stepsim {

enum class PassPart : std::uint8_t {
  kForward,
  kBackward,
  kInputGradients,
  kWeightGradients,
  kBackwardByParts,  // the whole backward in split form, inside a fused op
};

// Completes says whether a pass completes gradients of a chunk. Layers whose weight gradients may
// be split from the backward count apart from layers that make them together with the gradients of
// their inputs (embeddings).
struct Completes {
  bool weights = false;
  bool inputs = false;
};

// A pass over a chunk with a micro-batch.
struct Pass {
  PassPart part = PassPart::kForward;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
  Completes completes{};

  bool is_forward() const { return part == PassPart::kForward; }
  Handover input() const {
    return {is_forward() ? MessageKind::kActivation : MessageKind::kGradient, microbatch, chunk};
  }
  const std::vector<LayerStep>& steps_of(const LoweredLayer& layer, bool again) const {
    if (again) return layer.again;
    if (is_forward()) return layer.forward;
    return part == PassPart::kBackward ? layer.backward : layer.split_backward;
  }
  bool has(const LayerStep& step) const {
    if (part == PassPart::kInputGradients) return !step.weight_gradient;
    if (part == PassPart::kWeightGradients) return step.weight_gradient;
    return true;
  }
  bool completes_gradients_of(const LoweredLayer& layer) const {
    if (is_forward()) return false;
    if (part == PassPart::kInputGradients) return completes.inputs && !layer.has_weight_part();
    if (part == PassPart::kWeightGradients) return completes.weights && layer.has_weight_part();
    return layer.has_weight_part() ? completes.weights : completes.inputs;
  }
  // A layer without split weight gradients makes them together with the gradients of its inputs.
  LayerVisit visit(const LoweredLayer& layer) const {
    const bool by_parts = part == PassPart::kInputGradients || part == PassPart::kWeightGradients;
    return {.reads_parameters = part != PassPart::kWeightGradients,
            .makes_gradients =
                !is_forward() &&
                (!by_parts || layer.has_weight_part() == (part == PassPart::kWeightGradients)),
            .is_forward = is_forward()};
  }
};

// Stop is a visit of a pass to a layer. It runs the pass's own steps, or repeats the forward that a
// backward of a later layer needs.
struct Stop {
  const StageUnit* unit = nullptr;
  bool again = false;
};

// Returns the visits in order. Forwards go up, backwards go down. Layers whose forward is repeated
// come just before the backward of the layer behind them.
std::vector<Stop> stops_of(const Pass& pass, const StageChunk& chunk);

// Returns, for each op of a rank, the gradients that it completes. The last ops of each chunk that
// make gradients complete them.
std::vector<Completes> completed_by(const std::vector<PipelineOp>& order, std::size_t chunks);

}  // namespace stepsim
