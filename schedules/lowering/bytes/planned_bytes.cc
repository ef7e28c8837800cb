#include "schedules/lowering/bytes/planned_bytes.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "schedules/lowering/recompute/recompute.h"
#include "schedules/lowering/stages/expert_chips.h"
#include "schedules/lowering/stages/muon.h"
#include "schedules/lowering/stages/post_validation.h"
#include "schedules/lowering/stages/shared_weights.h"
#include "schedules/lowering/stages/stage.h"
#include "schedules/lowering/steps/context.h"
#include "schedules/lowering/steps/expert.h"
#include "schedules/lowering/steps/tensor.h"
#include "schedules/lowering/steps/weight_stationary.h"
#include "schedules/plan/axis.h"
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

// PlannedBlock is a block of the model or of a prediction module.
struct PlannedBlock {
  std::uint32_t kind = 0;
  BlockRecompute role{};
};

std::vector<PlannedBlock> all_blocks(const ModelSpec& model, const ParallelPlan& plan,
                                     const ModelLayers& layers) {
  std::vector<PlannedBlock> blocks;
  for (std::int64_t stage = 0; stage < stages_of(plan); ++stage) {
    const std::int64_t count = layers_of(plan, stage, model.layers);
    for (std::int64_t index = 0; index < count; ++index) {
      blocks.push_back(
          {layers.kind_of_block[blocks.size()], block_recompute(plan.recomputing, index, count)});
    }
  }
  for (const PredictionModule& module : layers.prediction) {
    blocks.push_back({module.kind_of_block, block_recompute(plan.recomputing, 0, 1)});
  }
  return blocks;
}

// Again holds the bytes that a block sends a second time.
struct Again {
  std::int64_t tensor =
      0;  // unsharded bytes that cross the tensor group, as crossings() counts them
  ContextAgain context{};
  bool states = false;
  ExpertsAgain experts{};
};

Again parts_again(const Layer& block, const ParallelPlan& plan, Bytes boundary) {
  Again again;
  const std::vector<OpRecompute> ops =
      recomputed_ops(block, plan.recomputing, plan.mesh, plan.tensor.cp_mode);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const LayerOp& op = block.ops[i];
    if (ops[i].gathers_again && plan.tensor.sequence_parallel) {
      again.tensor += gathered_input(op, plan, boundary).value();
    }
    if (ops[i].reduces_again)
      again.tensor += (plan.tensor.sequence_parallel ? 1 : 2) * boundary.value();
    const bool is_expert = op.region == Region::kExpert;
    const bool enters = is_expert && block.ops[i - 1].region != Region::kExpert;
    const bool leaves = is_expert && block.ops[i + 1].region != Region::kExpert;
    if (enters) again.experts.dispatch = ops[i].receives_again;
    if (leaves) again.experts.combine = ops[i].returns_again;
    if (op.name.role() == OpRole::kAttention)
      again.context = {ops[i].receives_again, ops[i].returns_again};
    if (op.passed_state > Bytes(0)) again.states = ops[i].receives_again;
  }
  return again;
}

// Returns the unsharded bytes of activations that cross the tensor group in a layer, both ways. An
// all-reduce counts twice. `leaves`: another layer follows.
std::int64_t crossings(const Layer& layer, const ParallelPlan& plan, Bytes boundary, bool leaves,
                       bool forward_twice) {
  const bool divided = plan.tensor.sequence_parallel;
  const auto is_tensor = [](const LayerOp& op) { return op.region == Region::kTensor; };
  std::int64_t forward = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    if (i > 0 && is_tensor(op) && !is_tensor(layer.ops[i - 1])) {
      // An all-gather and its gradient's reduce-scatter, or the all-reduce of the gradient.
      const Bytes whole = crossing(op, boundary);
      const Bytes gathered = gathered_input(op, plan, boundary);
      all += (whole + (divided ? gathered : whole)).value();
      forward += divided ? gathered.value() : 0;
    }
    if (op.tensor.regathers_input) all += gathered_input(op, plan, boundary).value();
    if (is_tensor(op) && (i + 1 < layer.ops.size() ? !is_tensor(layer.ops[i + 1]) : leaves)) {
      all += (boundary + (divided ? gathered_gradient(op, plan, boundary) : boundary)).value();
      forward += (divided ? 1 : 2) * boundary.value();
    }
  }
  return all + (forward_twice ? forward : 0);
}

// Returns the bytes that blocks in this role send a second time.
Again sent_again(const Layer& block, const ParallelPlan& plan, Bytes boundary,
                 BlockRecompute role) {
  if (role == BlockRecompute::kNone) return {};
  if (plan.recomputing.kind != Recompute::kFull) return parts_again(block, plan, boundary);
  const std::int64_t once = crossings(block, plan, boundary, true, false);
  return {.tensor = crossings(block, plan, boundary, true, true) - once,
          .context = {.inputs = true, .outputs = true},
          .states = true,
          .experts = {.dispatch = true, .combine = true}};
}

using Blocks = std::vector<PlannedBlock>;

std::int64_t tensor_bytes(const ModelSpec& model, const ParallelPlan& plan,
                          const ModelLayers& layers, const Blocks& blocks) {
  if (plan.mesh.tp == 1) return 0;
  const Bytes boundary = layers.tensor_boundary;
  std::int64_t microbatch = crossings(layers.embedding, plan, boundary, true, false) +
                            crossings(layers.head, plan, boundary, false, false);
  std::int64_t two_dimensional = 0;
  for (const PlannedBlock& block : blocks) {
    const Layer& layer = layers.blocks[block.kind];
    const Bytes part = boundary / plan.tensor.tensor_width;
    const std::int64_t once = crossings(layer, plan, part, true, false) +
                              sent_again(layer, plan, part, block.role).tensor;
    const bool twice =
        plan.recomputing.kind == Recompute::kFull && block.role != BlockRecompute::kNone;
    two_dimensional += summed_bytes(layer, plan, twice);
    if (plan.divides_width()) {  // in each group that divides the features
      const std::int64_t ways = plan.tensor.tensor_width;
      two_dimensional += ways * (plan.mesh.tp / ways - 1) * once +
                         width_bytes(layer, plan, block.role != BlockRecompute::kNone);
    } else {
      microbatch += once;
    }
  }
  for (const Layer* const layer : {&layers.embedding, &layers.head}) {
    two_dimensional += width_bytes(*layer, plan, false) + summed_bytes(*layer, plan, false);
  }
  for (const PredictionModule& module : layers.prediction) {
    microbatch += crossings(module.entry, plan, boundary, true, false) +
                  crossings(module.head, plan, boundary, false, false);
  }
  std::int64_t norms = 0;  // gradients of the S region, all-reduced once per step
  if (plan.tensor.sequence_parallel && !plan.divides_width()) {
    const std::int64_t copies = copies_of_stages(plan);
    const std::int64_t parts = plan.state.zero >= 2 ? copies * plan.sharded_over() : 1;
    for_each_layer(layers, [&](const Layer& layer) {
      norms += copies * 2 * part_of(layer.parameters(Region::kSequence), parts) *
               plan.update.gradient_bytes;
    });
    for (const SharedWeights& weights : shared_weights(model, plan)) {
      const std::int64_t parameters = sequence_parameters_of(weights, model, layers);
      const auto copied = static_cast<std::int64_t>(weights.holders.size()) - 1;
      norms += copied * 2 * part_of(parameters, parts) * plan.update.gradient_bytes;
    }
  }
  const auto losses = static_cast<std::int64_t>(1 + layers.prediction.size());
  for (const LayerOp& op : layers.head.ops) {  // loss: fp32 values of every token, all-reduced
    microbatch += losses * 2 * op.tensor.reduced_values_per_token * plan.tokens() * 4;
  }
  return ((plan.mesh.tp - 1) * (microbatch * plan.microbatches() + norms) +
          two_dimensional * plan.microbatches()) *
         plan.mesh.dp * plan.mesh.cp;
}

// Replicated describes the gradients and parameters of layers in one group of `replicas` ranks.
// `shards` of the ranks divide the state, whose buffers are padded for it.
struct Replicated {
  struct Layer {
    std::int64_t trained = 0;  // parameters
    std::int64_t frozen = 0;   // those that FSDP gathers and nobody trains
  };
  std::vector<Layer> layers;
  std::vector<std::int64_t> gathered_again{};  // parameters that FSDP gathers a third time
  std::vector<std::int64_t> copied{};  // parameters that another rank owns, reduced once per step
  std::int64_t replicas = 1;
  std::int64_t shards = 1;
};
std::int64_t replicated_bytes(const ParallelPlan& plan, const Replicated& state) {
  // Counts the micro-batches that go through one copy of a stage.
  const std::int64_t microbatches = plan.microbatches() / copies_of_stages(plan);
  const std::int64_t g = plan.update.gradient_bytes;
  const std::int64_t w = size_of(plan.weights()).value();
  const std::int64_t groups = state.replicas / state.shards;
  const std::int64_t senders = groups * (state.shards - 1);
  const std::int64_t reductions = plan.state.zero >= 2 ? microbatches : 1;
  const std::int64_t gathers =
      plan.state.zero == 3 && plan.state.reshard_after_forward ? 2 * microbatches : 1;
  std::int64_t sum = 0;
  for (const Replicated::Layer& layer : state.layers) {
    if (plan.state.zero == 0) {
      sum += 2 * (state.replicas - 1) * layer.trained * g;
      continue;
    }
    const std::int64_t gathered = layer.trained + (plan.state.zero == 3 ? layer.frozen : 0);
    sum += senders * padded(layer.trained, state.shards) * reductions * g;
    sum += senders * padded(gathered, state.shards) * gathers * w;
    sum += state.shards * 2 * (groups - 1) * part_of(layer.trained, state.shards) * g;
  }
  if (!state.copied.empty()) {
    Replicated copy{.layers = {}, .replicas = state.replicas, .shards = state.shards};
    for (const std::int64_t parameters : state.copied) copy.layers.push_back({parameters});
    ParallelPlan once = plan;
    once.state.zero = std::min(plan.state.zero, 1);
    sum += replicated_bytes(once, copy);
  }
  if (plan.state.zero == 3 && plan.state.reshard_after_forward) {
    for (const std::int64_t parameters : state.gathered_again) {
      sum += senders * padded(parameters, state.shards) * microbatches * w;
    }
  }
  return sum;
}

// Returns what Muon exchanges twice of matrices that replicas divide, 2 bytes a value.
std::int64_t matrix_bytes(const ParallelPlan& plan, const ModelLayers& layers,
                          const Replicated& state, bool experts) {
  if (plan.training.optimizer != Optimizer::kMuon || plan.state.zero < 3) return 0;
  std::int64_t values = 0;
  const auto add = [&](const Layer& layer) {
    for (const WeightMatrix& matrix : matrices_of(layer)) {
      if (matrix.routed == experts) values += matrix.values();
    }
  };
  for_each_layer(layers, add);
  for (std::int64_t block = 0; block < layers.vision.blocks; ++block) add(layers.vision.block);
  add(layers.vision.entry);
  add(layers.vision.projector);
  return 2 * 2 * exchanged_values(values, state.shards) * (state.shards - 1) *
         (state.replicas / state.shards);
}

std::int64_t data_bytes(const ModelSpec& model, const ParallelPlan& plan, const ModelLayers& layers,
                        const Blocks& blocks) {
  const std::int64_t copies = copies_of_stages(plan);
  Replicated dense{
      .layers = {}, .replicas = copies * plan.replicas(), .shards = copies * plan.sharded_over()};
  Replicated experts{.layers = {}, .replicas = copies * plan.edp(), .shards = copies * plan.edp()};
  for (const PlannedBlock& block : blocks) {
    if (!has_own_visit(block.role)) continue;
    const Layer& layer = layers.blocks[block.kind];
    const std::int64_t routed = layer.parameters(Region::kExpert) + layer.frozen(Region::kExpert);
    experts.gathered_again.push_back(routed);
    dense.gathered_again.push_back(layer.parameters() + layer.borrowed() + layer.frozen() - routed);
  }
  for_each_layer(layers, [&](const Layer& layer) {
    const Replicated::Layer routed{layer.parameters(Region::kExpert),
                                   layer.frozen(Region::kExpert)};
    dense.layers.push_back({layer.parameters() - routed.trained, layer.frozen() - routed.frozen});
    experts.layers.push_back(routed);
  });
  const auto add_vision = [&dense](const Layer& layer) {
    dense.layers.push_back({layer.parameters(), layer.frozen()});
  };
  if (layers.vision.blocks > 0) {
    add_vision(layers.vision.entry);
    for (std::int64_t block = 0; block < layers.vision.blocks; ++block) {
      add_vision(layers.vision.block);
    }
    add_vision(layers.vision.projector);
  }
  const std::int64_t table = shares_table(model) ? layers.embedding.ops.front().parameters.own : 0;
  std::int64_t summed = 0;  // over the holders of shared weights
  if (plan.state.zero == 3) {
    // The table is gathered for every layer that reads it and reduced after each, as are weights
    // of an earlier layer.
    for (std::size_t block = 0; block < layers.kind_of_block.size(); ++block) {
      dense.layers[1 + block].trained += layers.blocks[layers.kind_of_block[block]].borrowed();
    }
    const std::size_t head = 1 + layers.kind_of_block.size();
    if (model.embedding.tied) dense.layers[head].trained += table;
    for (std::size_t module = 0; module < layers.prediction.size(); ++module) {
      dense.layers[head + 3 * module + 1].trained += table;
      dense.layers[head + 3 * module + 3].trained += unembedding_parameters(layers);
    }
  }
  for (const SharedWeights& weights : shared_weights(model, plan)) {
    const std::int64_t parameters = parameters_of(weights, model, layers);
    const std::int64_t parts = plan.state.zero >= 2 ? plan.sharded_over() : 1;
    const auto copied = static_cast<std::int64_t>(weights.holders.size()) - 1;
    summed +=
        2 * copied * part_of(parameters, parts) * plan.update.gradient_bytes * plan.replicas();
    if (plan.state.zero < 3) {
      dense.copied.insert(dense.copied.end(), static_cast<std::size_t>(copied), parameters);
    }
  }
  return plan.mesh.tp *
             (replicated_bytes(plan, dense) + summed + matrix_bytes(plan, layers, dense, false)) +
         plan.mesh.etp * plan.mesh.ep *
             (replicated_bytes(plan, experts) + matrix_bytes(plan, layers, experts, true));
}

std::int64_t all_context_bytes(const ParallelPlan& plan, const LoweredModel& lowered,
                               const Blocks& blocks) {
  if (plan.mesh.cp == 1) return 0;
  const ModelLayers& layers = lowered.layers;
  std::int64_t sum = 0;
  for (const PlannedBlock& block : blocks) {
    const Again again =
        sent_again(layers.blocks[block.kind], plan, layers.tensor_boundary, block.role);
    sum += context_bytes(lowered.attention[block.kind], plan, again.context) +
           state_bytes(layers.blocks[block.kind], plan.mesh, plan.tensor.cp_mode, again.states);
  }
  return sum * plan.microbatches() * plan.mesh.tp * plan.mesh.dp;
}

std::int64_t all_expert_bytes(const ParallelPlan& plan, const ModelLayers& layers,
                              const Blocks& blocks, const ExpertExchange& exchange) {
  if (plan.mesh.ep * plan.mesh.etp == 1) return 0;
  std::int64_t sum = 0;
  for (const PlannedBlock& block : blocks) {
    const Layer& layer = layers.blocks[block.kind];
    if (!layer.routing) continue;
    const Again again = sent_again(layer, plan, layers.tensor_boundary, block.role);
    sum += expert_bytes(*layer.routing, plan, exchange, again.experts);
  }
  return sum * plan.microbatches();
}

// Returns the bytes of the norm of all gradients: one fp32 value. With post-validation it goes
// through each stage, then along the pipeline and back.
std::int64_t norm_bytes(const ParallelPlan& plan) {
  if (!plan.update.clip_gradients) return 0;
  const bool alike = plan.state.zero == 0 && plan.mesh.ep == 1;
  const std::int64_t of_a_stage = alike ? plan.mesh.tp : plan.ranks() / plan.mesh.pp;
  const std::int64_t members = plan.update.post_validation ? of_a_stage : of_a_stage * plan.mesh.pp;
  const std::int64_t reduced =
      plan.ranks() / members * 2 * (members - 1) * size_of(DataType::kFp32).value();
  if (!plan.update.post_validation) return reduced;
  return reduced + plan.ranks() / plan.mesh.pp * 2 * (plan.mesh.pp - 1) * kGlobalState.value();
}

// Calls use(layer) for the first layer behind each boundary between stages. Only boundaries between
// different ranks count: a V turns on one rank, behind every pp stages.
void for_each_boundary(const ModelSpec& model, const ParallelPlan& plan,
                       const std::function<void(std::int64_t)>& use) {
  std::int64_t layer = 0;
  for (std::int64_t stage = 0; stage + 1 < stages_of(plan); ++stage) {
    layer += layers_of(plan, stage, model.layers);
    const bool turns = placement_of(plan) == Placement::kV && (stage + 1) % plan.mesh.pp == 0;
    if (!turns) use(layer);
  }
}

std::int64_t pipeline_bytes(const ModelSpec& model, const ParallelPlan& plan,
                            const ModelLayers& layers) {
  if (plan.mesh.pp == 1) return 0;
  std::int64_t bytes = 0;
  for_each_boundary(model, plan, [&](std::int64_t layer) {
    bytes += message_size(model, plan, layers, layer).value();
  });
  return 2 * bytes * plan.microbatches() * plan.mesh.tp * plan.mesh.cp * plan.mesh.dp;
}

// Returns what tensor ranks gather of messages that came in shares.
std::int64_t gathered_message_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                    const ModelLayers& layers) {
  if (!plan.scatters_messages()) return 0;
  std::int64_t messages = 0;
  for_each_boundary(model, plan, [&](std::int64_t) { messages += 2 * plan.microbatches(); });
  return messages * layers.boundary.value() * (plan.mesh.tp - 1) * plan.mesh.cp * plan.mesh.dp;
}

// Returns the bytes of a pass that has forwards only: an all-reduce of the stream behind each run
// of the T region (with sequence parallelism a gather before it and a reduce-scatter behind it), of
// values a token where an op sums some, a gather of the logits, and what an op
// sends to all others.
class TensorBytesOfPass {
 public:
  TensorBytesOfPass(const ParallelPlan& plan, const ModelLayers& layers)
      : plan_(plan), layers_(layers) {}

  std::int64_t of_ends() const {
    const std::int64_t logits = layers_.head.ops.back().tensor.crossing.value();
    return (of(layers_.embedding, 1) + of(layers_.head, 1) + logits * (plan_.mesh.tp - 1)) *
           groups();
  }
  std::int64_t of_blocks() const {
    std::int64_t sum = 0;
    for (const std::uint32_t kind : layers_.kind_of_block) {
      sum += of(layers_.blocks[kind], plan_.tensor.tensor_width);
    }
    return sum * groups();
  }

 private:
  std::int64_t groups() const { return plan_.mesh.cp * plan_.mesh.dp; }

  // Returns the bytes that a tensor group sends, of which `ways` ranks divide the model's width.
  std::int64_t of(const Layer& layer, std::int64_t ways) const {
    const Bytes boundary = layers_.tensor_boundary / ways;
    std::int64_t over_features = 0;  // a group of tp / ways ranks
    std::int64_t over_all = 0;
    std::int64_t over_width = 0;
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
      const LayerOp& op = layer.ops[i];
      over_all +=
          2 * op.tensor.summed_values_per_token * plan_.tokens() * size_of(DataType::kFp32).value();
      const bool is_last = i + 1 == layer.ops.size();
      const bool leaves = is_last ? &layer != &layers_.head : !is_tensor(layer.ops[i + 1]);
      if (is_tensor(op) && leaves)
        over_features += (plan_.tensor.sequence_parallel ? 1 : 2) * boundary.value();
      if (plan_.tensor.sequence_parallel && i > 0 && is_tensor(op) &&
          !is_tensor(layer.ops[i - 1])) {
        over_features += crossing(op, boundary).value();
      }
      over_all += (op.pass.sent_before + op.pass.sent_after).value();
      over_width += (op.tensor.width_gathered + op.tensor.width_reduced).value();
    }
    return ways * (plan_.mesh.tp / ways - 1) * over_features + (plan_.mesh.tp - 1) * over_all +
           plan_.mesh.tp / plan_.tensor.tensor_width * (plan_.tensor.tensor_width - 1) * over_width;
  }

  const ParallelPlan& plan_;
  const ModelLayers& layers_;
};

std::int64_t tensor_bytes_of_pass(const ParallelPlan& plan, const ModelLayers& layers) {
  const TensorBytesOfPass bytes(plan, layers);
  return bytes.of_ends() + bytes.of_blocks();
}

// Returns what context ranks gather in a pass, or pass round.
std::int64_t context_bytes_of_pass(const ParallelPlan& plan, const ModelLayers& layers) {
  std::int64_t sum = 0;
  for_each_layer(layers, [&sum, &plan](const Layer& layer) {
    for (const LayerOp& op : layer.ops) {
      sum += op.pass.gathered_before.value() + plan.mesh.cp * op.pass.handed_round.value();
    }
  });
  return sum * (plan.mesh.cp - 1) * plan.mesh.tp * plan.mesh.dp;
}

// Returns the bytes of a pass of inference. Of what a training step sends between stages and to
// experts it has half: the way forward.
std::array<Bytes, kMostAxes> bytes_of_pass(const ModelSpec& model, const ParallelPlan& plan,
                                           const ModelLayers& layers, const Blocks& blocks,
                                           const ExpertExchange& exchange) {
  std::array<Bytes, kMostAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kTensor)] = Bytes(tensor_bytes_of_pass(plan, layers));
  bytes[static_cast<std::size_t>(Axis::kContext)] = Bytes(context_bytes_of_pass(plan, layers));
  bytes[static_cast<std::size_t>(Axis::kExpert)] =
      Bytes(all_expert_bytes(plan, layers, blocks, exchange) / 2);
  bytes[static_cast<std::size_t>(Axis::kPipeline)] = Bytes(pipeline_bytes(model, plan, layers) / 2);
  return bytes;
}

}  // namespace

std::array<Bytes, kMostAxes> planned_bytes_of_split(
    const ParallelPlan& whole, const ModelLayers& ends,
    const std::vector<PlannedMicrobatch>& microbatches) {
  Bytes tensor(TensorBytesOfPass(whole, ends).of_ends());
  Bytes expert;
  for (const PlannedMicrobatch& microbatch : microbatches) {
    tensor += Bytes(TensorBytesOfPass(microbatch.plan, microbatch.layers).of_blocks());
    for (const std::uint32_t kind : microbatch.layers.kind_of_block) {
      const Layer& block = microbatch.layers.blocks[kind];
      if (block.routing) expert += bytes_of_split_layer(microbatch.plan, *block.routing);
    }
  }
  std::array<Bytes, kMostAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kTensor)] = tensor;
  bytes[static_cast<std::size_t>(Axis::kExpert)] = expert;
  return bytes;
}

std::array<Bytes, kMostAxes> planned_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                           const LoweredModel& lowered,
                                           const ExpertExchange& exchange) {
  const ModelLayers& layers = lowered.layers;
  const Blocks blocks = all_blocks(model, plan, layers);
  if (plan.is_inference()) return bytes_of_pass(model, plan, layers, blocks, exchange);
  std::array<Bytes, kMostAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kContext)] = Bytes(all_context_bytes(plan, lowered, blocks));
  bytes[static_cast<std::size_t>(Axis::kExpert)] =
      Bytes(all_expert_bytes(plan, layers, blocks, exchange));
  bytes[static_cast<std::size_t>(Axis::kTensor)] = Bytes(
      tensor_bytes(model, plan, layers, blocks) + gathered_message_bytes(model, plan, layers));
  bytes[static_cast<std::size_t>(Axis::kData)] = Bytes(data_bytes(model, plan, layers, blocks));
  bytes[static_cast<std::size_t>(Axis::kOther)] = Bytes(norm_bytes(plan));
  bytes[static_cast<std::size_t>(Axis::kPipeline)] = Bytes(pipeline_bytes(model, plan, layers));
  return bytes;
}

}  // namespace stepsim
