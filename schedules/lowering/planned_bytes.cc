#include "schedules/lowering/planned_bytes.h"

#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Whole bytes of activations that cross the tensor group in a layer, both ways; an all-reduce
// counts as two. `leaves`: something follows the layer.
std::int64_t crossings(const Layer& layer, const ParallelPlan& plan, Bytes boundary, bool leaves,
                       bool forward_twice) {
  const bool divided = plan.sequence_parallel;
  const auto is_tensor = [](const LayerOp& op) { return op.region == Region::kTensor; };
  const auto whole = [&](const LayerOp& op) {
    return (op.crossing == Bytes(0) ? boundary : op.crossing).value();
  };
  std::int64_t forward = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    if (i > 0 && is_tensor(op) && !is_tensor(layer.ops[i - 1])) {
      all += 2 * whole(op);  // gathered and its gradient reduced; or its gradient all-reduced
      forward += divided ? whole(op) : 0;
    }
    if (op.regathers_input) all += whole(op);
    if (is_tensor(op) && (i + 1 < layer.ops.size() ? !is_tensor(layer.ops[i + 1]) : leaves)) {
      all += 2 * boundary.value();
      forward += (divided ? 1 : 2) * boundary.value();
    }
  }
  return all + (forward_twice ? forward : 0);
}

std::int64_t tensor_bytes(const ParallelPlan& plan, const ModelLayers& layers) {
  if (plan.tp == 1) return 0;
  const Bytes boundary = layers.tensor_boundary;
  const bool full = plan.recompute == Recompute::kFull;
  std::int64_t microbatch = crossings(layers.embedding, plan, boundary, true, false) +
                            crossings(layers.head, plan, boundary, false, false);
  for (const std::uint32_t kind : layers.kind_of_block) {
    microbatch += crossings(layers.blocks[kind], plan, boundary, true, full);
  }
  for (const PredictionModule& module : layers.prediction) {
    microbatch += crossings(module.entry, plan, boundary, true, false) +
                  crossings(layers.blocks[module.kind_of_block], plan, boundary, true, full) +
                  crossings(module.head, plan, boundary, false, false);
  }
  const auto losses = static_cast<std::int64_t>(1 + layers.prediction.size());
  for (const LayerOp& op : layers.head.ops) {  // the loss: fp32 values of every token, all-reduced
    microbatch += losses * 2 * op.reduced_values_per_token * plan.microbatch * plan.sequence * 4;
  }
  return (plan.tp - 1) * microbatch * plan.microbatches() * plan.dp * plan.cp;
}

bool has_copies(const ParallelPlan& plan) {
  return placement_of(plan) == Placement::kBidirectional;
}

std::int64_t data_bytes(const ModelSpec& model, const ParallelPlan& plan,
                        const ModelLayers& layers) {
  const std::int64_t n = plan.dp * plan.cp * (has_copies(plan) ? 2 : 1);
  const std::int64_t table = layers.embedding.parameters();
  const bool shared = model.tied_embeddings || model.prediction_modules > 0;
  const bool apart = plan.pp > 1 && placement_of(plan) == Placement::kLoop;
  const std::int64_t copies = shared && apart ? 1 : 0;
  std::int64_t parameters = table + layers.head.parameters() + copies * table;
  for (const std::uint32_t kind : layers.kind_of_block) {
    parameters += layers.blocks[kind].parameters();
  }
  for (const PredictionModule& module : layers.prediction) {
    parameters += module.entry.parameters() + layers.blocks[module.kind_of_block].parameters() +
                  module.head.parameters();
  }
  const std::int64_t gradient = plan.gradient_bytes;
  const std::int64_t weight = size_of(plan.type).value();
  std::int64_t a_parameter = 2 * gradient;
  if (plan.zero == 1) a_parameter = gradient + weight;
  if (plan.zero == 3) a_parameter = (gradient + 2 * weight) * plan.microbatches();
  const std::int64_t tied = copies * 2 * table * gradient * n;
  return plan.tp * ((n - 1) * parameters * a_parameter + tied);
}

std::int64_t pipeline_bytes(const ParallelPlan& plan, const ModelLayers& layers) {
  const std::int64_t message = layers.boundary.value() / (plan.sequence_parallel ? plan.tp : 1);
  if (plan.pp == 1) return 0;
  const std::int64_t turns = placement_of(plan) == Placement::kV ? chunks_of(plan) - 1 : 0;
  const std::int64_t boundaries = stages_of(plan) - 1 - turns;  // between ranks
  return 2 * boundaries * plan.microbatches() * message * plan.tp * plan.cp * plan.dp;
}

}  // namespace

std::array<Bytes, kAxes> planned_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                       const ModelLayers& layers) {
  std::array<Bytes, kAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kTensor)] = Bytes(tensor_bytes(plan, layers));
  bytes[static_cast<std::size_t>(Axis::kData)] = Bytes(data_bytes(model, plan, layers));
  bytes[static_cast<std::size_t>(Axis::kPipeline)] = Bytes(pipeline_bytes(plan, layers));
  return bytes;
}

}  // namespace stepsim
