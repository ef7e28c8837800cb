#include "schedules/lowering/planned_bytes.h"

#include <vector>

#include "schedules/lowering/context.h"
#include "schedules/lowering/expert.h"
#include "schedules/lowering/stage.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

template <typename Visit>
void for_each_layer(const ModelLayers& layers, const Visit& visit) {
  visit(layers.embedding);
  for (const std::uint32_t kind : layers.kind_of_block) visit(layers.blocks[kind]);
  visit(layers.head);
  for (const PredictionModule& module : layers.prediction) {
    visit(module.entry);
    visit(layers.blocks[module.kind_of_block]);
    visit(module.head);
  }
}

std::int64_t copies_of_stages(const ParallelPlan& plan) {
  return placement_of(plan) == Placement::kBidirectional ? 2 : 1;
}

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
  std::int64_t norms = 0;  // gradients of the S region, all-reduced once a step
  if (plan.sequence_parallel) {
    const std::int64_t copies = copies_of_stages(plan);
    const std::int64_t parts = plan.zero >= 2 ? copies * plan.sharded_over() : 1;
    for_each_layer(layers, [&](const Layer& layer) {
      norms +=
          copies * 2 * part_of(layer.parameters(Region::kSequence), parts) * plan.gradient_bytes;
    });
  }
  const auto losses = static_cast<std::int64_t>(1 + layers.prediction.size());
  for (const LayerOp& op : layers.head.ops) {  // the loss: fp32 values of every token, all-reduced
    microbatch +=
        losses * 2 * op.reduced_values_per_token * plan.microbatch * (plan.sequence / plan.cp) * 4;
  }
  return (plan.tp - 1) * (microbatch * plan.microbatches() + norms) * plan.dp * plan.cp;
}

// Of the gradients and parameters of layers that have `parameters` each, in one group of `replicas`
// ranks of which `shards` divide the state.
struct Replicated {
  std::vector<std::int64_t> layers;
  std::int64_t replicas = 1;
  std::int64_t shards = 1;
};
std::int64_t replicated_bytes(const ParallelPlan& plan, const Replicated& state) {
  const std::int64_t microbatches = plan.microbatches();
  const std::int64_t g = plan.gradient_bytes;
  const std::int64_t w = size_of(plan.weights()).value();
  const std::int64_t groups = state.replicas / state.shards;
  std::int64_t sum = 0;
  for (const std::int64_t parameters : state.layers) {
    if (plan.zero == 0) {
      sum += 2 * (state.replicas - 1) * parameters * g;
      continue;
    }
    std::int64_t a_parameter = g + w;
    if (plan.zero == 2) a_parameter = microbatches * g + w;
    if (plan.zero == 3) {
      const std::int64_t gathers = plan.reshard_after_forward ? 2 * microbatches : 1;
      a_parameter = microbatches * g + gathers * w;
    }
    sum += groups * (state.shards - 1) * parameters * a_parameter;
    sum += state.shards * 2 * (groups - 1) * part_of(parameters, state.shards) * g;
  }
  return sum;
}

std::int64_t data_bytes(const ModelSpec& model, const ParallelPlan& plan,
                        const ModelLayers& layers) {
  const std::int64_t copies = copies_of_stages(plan);
  Replicated dense{
      .layers = {}, .replicas = copies * plan.replicas(), .shards = copies * plan.sharded_over()};
  Replicated experts{.layers = {}, .replicas = copies * plan.edp(), .shards = copies * plan.edp()};
  for_each_layer(layers, [&](const Layer& layer) {
    const std::int64_t routed = layer.parameters(Region::kExpert);
    dense.layers.push_back(layer.parameters() - routed);
    if (routed > 0) experts.layers.push_back(routed);
  });
  // The embedding's table, which the last stage reads too.
  const bool shared = model.tied_embeddings || model.prediction_modules > 0;
  const std::int64_t table = shared ? layers.embedding.ops.front().parameters : 0;
  const bool apart = shared && plan.pp > 1 && placement_of(plan) == Placement::kLoop;
  std::int64_t tied = 0;
  if (plan.zero == 3) {
    if (shared) dense.layers.back() += table;  // gathered for the head, and reduced after it
  } else if (apart) {
    dense.layers.push_back(table);
  }
  if (apart) {
    const std::int64_t parts = plan.zero >= 2 ? plan.sharded_over() : 1;
    tied = 2 * part_of(table, parts) * plan.gradient_bytes * plan.replicas();
  }
  return plan.tp * (replicated_bytes(plan, dense) + tied) +
         plan.etp * plan.ep * replicated_bytes(plan, experts);
}

// Kinds of all blocks, those of prediction modules too.
std::vector<std::uint32_t> kinds_of_blocks(const ModelLayers& layers) {
  std::vector<std::uint32_t> kinds = layers.kind_of_block;
  for (const PredictionModule& module : layers.prediction) kinds.push_back(module.kind_of_block);
  return kinds;
}

std::int64_t all_context_bytes(const ParallelPlan& plan, const LoweredModel& lowered) {
  if (plan.cp == 1) return 0;
  const bool attends_again =
      plan.recompute == Recompute::kFull ||
      (plan.recompute == Recompute::kSelective &&
       (plan.cp_mode == ContextMode::kRing || plan.cp_mode == ContextMode::kZigzagRing));
  std::int64_t sum = 0;
  for (const std::uint32_t kind : kinds_of_blocks(lowered.layers)) {
    sum += context_bytes(lowered.attention[kind], plan, attends_again);
  }
  return sum * plan.microbatches() * plan.tp * plan.dp;
}

std::int64_t all_expert_bytes(const ParallelPlan& plan, const ModelLayers& layers) {
  if (plan.ep * plan.etp == 1) return 0;
  std::int64_t sum = 0;
  for (const std::uint32_t kind : kinds_of_blocks(layers)) {
    const auto& routing = layers.blocks[kind].routing;
    if (routing) sum += expert_bytes(*routing, plan, plan.recompute == Recompute::kFull);
  }
  return sum * plan.microbatches();
}

// The norm of all gradients: one fp32 value.
std::int64_t norm_bytes(const ParallelPlan& plan) {
  if (!plan.clip_gradients) return 0;
  const bool alike = plan.zero == 0 && plan.ep == 1;
  const std::int64_t members = alike ? plan.tp * plan.pp : plan.ranks();
  return plan.ranks() / members * 2 * (members - 1) * size_of(DataType::kFp32).value();
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
                                       const LoweredModel& lowered) {
  const ModelLayers& layers = lowered.layers;
  std::array<Bytes, kAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kContext)] = Bytes(all_context_bytes(plan, lowered));
  bytes[static_cast<std::size_t>(Axis::kExpert)] = Bytes(all_expert_bytes(plan, layers));
  bytes[static_cast<std::size_t>(Axis::kTensor)] = Bytes(tensor_bytes(plan, layers));
  bytes[static_cast<std::size_t>(Axis::kData)] = Bytes(data_bytes(model, plan, layers));
  bytes[static_cast<std::size_t>(Axis::kOther)] = Bytes(norm_bytes(plan));
  bytes[static_cast<std::size_t>(Axis::kPipeline)] = Bytes(pipeline_bytes(plan, layers));
  return bytes;
}

}  // namespace stepsim
