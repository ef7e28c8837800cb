#include "schedules/lowering/bytes/planned_bytes.h"

#include <algorithm>
#include <optional>
#include <utility>
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
#include "schedules/plan/inference_plan.h"
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

// PlannedBlock is a block of the model or of a prediction module.
struct PlannedBlock {
  std::uint32_t kind = 0;
  BlockRecompute role{};
};

// Again holds the bytes that a block sends a second time.
struct Again {
  std::int64_t tensor =
      0;  // unsharded bytes that cross the tensor group, as crossings() counts them
  ContextAgain context{};
  bool states = false;
  ExpertsAgain experts{};
};

// Returns the unsharded bytes of activations that cross the tensor group in a layer, both ways. An
// all-reduce counts twice. `leaves`: another layer follows.
std::int64_t crossings(const Layer& layer, const TensorGroup& group, Bytes boundary, bool leaves,
                       bool forward_twice) {
  const bool divided = group.sequence_parallel;
  const auto is_tensor = [](const LayerOp& op) { return op.region == Region::kTensor; };
  std::int64_t forward = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    if (i > 0 && is_tensor(op) && !is_tensor(layer.ops[i - 1])) {
      // An all-gather and its gradient's reduce-scatter, or the all-reduce of the gradient.
      const Bytes whole = crossing(op, boundary);
      const Bytes gathered = gathered_input(op, group, boundary);
      all += (whole + (divided ? gathered : whole)).value();
      forward += divided ? gathered.value() : 0;
    }
    if (op.tensor.regathers_input) all += gathered_input(op, group, boundary).value();
    if (is_tensor(op) && (i + 1 < layer.ops.size() ? !is_tensor(layer.ops[i + 1]) : leaves)) {
      all += (boundary + (divided ? gathered_gradient(op, group, boundary) : boundary)).value();
      forward += (divided ? 1 : 2) * boundary.value();
    }
  }
  return all + (forward_twice ? forward : 0);
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

std::array<Bytes, kMostAxes> by_axis(const std::vector<std::pair<Axis, std::int64_t>>& values) {
  std::array<Bytes, kMostAxes> bytes{};
  for (const auto& [axis, value] : values) bytes[static_cast<std::size_t>(axis)] = Bytes(value);
  return bytes;
}

// Returns the bytes of a pass that has forwards only: an all-reduce of the stream behind each run
// of the T region (with sequence parallelism a gather before it and a reduce-scatter behind it), of
// values a token where an op sums some, a gather of the logits, and what an op
// sends to all others.
class TensorBytesOfPass {
 public:
  TensorBytesOfPass(const TensorGroup& group, std::int64_t groups, const ModelLayers& layers)
      : group_(group), groups_(groups), layers_(layers) {}

  std::int64_t of_ends() const {
    const std::int64_t logits = layers_.head.ops.back().tensor.crossing.value();
    return (of(layers_.embedding, 1) + of(layers_.head, 1) + logits * (group_.ranks - 1)) * groups_;
  }
  std::int64_t of_blocks() const {
    std::int64_t sum = 0;
    for (const std::uint32_t kind : layers_.kind_of_block) {
      sum += of(layers_.blocks[kind], group_.width);
    }
    return sum * groups_;
  }

 private:
  // Returns the bytes that a tensor group sends, of which `ways` ranks divide the model's width.
  std::int64_t of(const Layer& layer, std::int64_t ways) const {
    const Bytes boundary = layers_.tensor_boundary / ways;
    std::int64_t over_features = 0;  // a group of tp / ways ranks
    std::int64_t over_all = 0;
    std::int64_t over_width = 0;
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
      const LayerOp& op = layer.ops[i];
      over_all +=
          2 * op.tensor.summed_values_per_token * group_.tokens * size_of(DataType::kFp32).value();
      const bool is_last = i + 1 == layer.ops.size();
      const bool leaves = is_last ? &layer != &layers_.head : !is_tensor(layer.ops[i + 1]);
      if (is_tensor(op) && leaves)
        over_features += (group_.sequence_parallel ? 1 : 2) * boundary.value();
      if (group_.sequence_parallel && i > 0 && is_tensor(op) && !is_tensor(layer.ops[i - 1])) {
        over_features += crossing(op, boundary).value();
      }
      over_all += (op.pass.sent_before + op.pass.sent_after).value();
      over_width += (op.tensor.width_gathered + op.tensor.width_reduced).value();
    }
    return ways * (group_.ranks / ways - 1) * over_features + (group_.ranks - 1) * over_all +
           group_.ranks / group_.width * (group_.width - 1) * over_width;
  }

  TensorGroup group_;
  std::int64_t groups_;
  const ModelLayers& layers_;
};

class PlannedBytes {
 public:
  PlannedBytes(const ModelSpec& model, const ParallelPlan& plan, const LoweredModel& lowered,
               const ExpertExchange& exchange)
      : model_(model),
        plan_(plan),
        lowered_(lowered),
        layers_(lowered.layers),
        exchange_(exchange),
        group_(tensor_group(plan)),
        copies_(placement_of(plan.pipeline) == Placement::kBidirectional ? 2 : 1),
        stages_(layers_of_stages(plan, model.layers)),
        shared_(shared_weights(model, plan)) {
    for (const std::int64_t count : stages_) {
      for (std::int64_t index = 0; index < count; ++index) {
        blocks_.push_back({layers_.kind_of_block[blocks_.size()],
                           block_recompute(plan.recomputing, index, count)});
      }
    }
    for (const PredictionModule& module : layers_.prediction) {
      blocks_.push_back({module.kind_of_block, block_recompute(plan.recomputing, 0, 1)});
    }
  }

  std::array<Bytes, kMostAxes> of_step() const {
    return by_axis({{Axis::kTensor, of_tensor() + of_gathered_messages()},
                    {Axis::kContext, of_context()},
                    {Axis::kExpert, of_experts()},
                    {Axis::kData, of_data()},
                    {Axis::kOther, of_norm()},
                    {Axis::kPipeline, of_pipeline()}});
  }

  // A pass of inference has half of what a training step sends between stages and to experts: the
  // way forward.
  std::array<Bytes, kMostAxes> of_pass() const {
    const TensorBytesOfPass tensor(group_, plan_.mesh.replicas(), layers_);
    return by_axis({{Axis::kTensor, tensor.of_ends() + tensor.of_blocks()},
                    {Axis::kContext, of_context_of_pass()},
                    {Axis::kExpert, of_experts() / 2},
                    {Axis::kPipeline, of_pipeline() / 2}});
  }

 private:
  Again parts_again(const Layer& block, Bytes boundary) const {
    Again again;
    const std::vector<OpRecompute> ops =
        recomputed_ops(block, plan_.recomputing, plan_.mesh, plan_.tensor.cp_mode);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const LayerOp& op = block.ops[i];
      if (ops[i].gathers_again && plan_.tensor.sequence_parallel) {
        again.tensor += gathered_input(op, group_, boundary).value();
      }
      if (ops[i].reduces_again)
        again.tensor += (plan_.tensor.sequence_parallel ? 1 : 2) * boundary.value();
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

  // Returns the bytes that blocks in this role send a second time.
  Again sent_again(const Layer& block, Bytes boundary, BlockRecompute role) const {
    if (role == BlockRecompute::kNone) return {};
    if (plan_.recomputing.kind != Recompute::kFull) return parts_again(block, boundary);
    const std::int64_t once = crossings(block, group_, boundary, true, false);
    return {.tensor = crossings(block, group_, boundary, true, true) - once,
            .context = {.inputs = true, .outputs = true},
            .states = true,
            .experts = {.dispatch = true, .combine = true}};
  }

  std::int64_t of_tensor() const {
    if (plan_.mesh.tp == 1) return 0;
    const Bytes boundary = layers_.tensor_boundary;
    std::int64_t microbatch = crossings(layers_.embedding, group_, boundary, true, false) +
                              crossings(layers_.head, group_, boundary, false, false);
    std::int64_t two_dimensional = 0;
    for (const PlannedBlock& block : blocks_) {
      const Layer& layer = layers_.blocks[block.kind];
      const Bytes part = boundary / plan_.tensor.tensor_width;
      const std::int64_t once =
          crossings(layer, group_, part, true, false) + sent_again(layer, part, block.role).tensor;
      const bool twice =
          plan_.recomputing.kind == Recompute::kFull && block.role != BlockRecompute::kNone;
      two_dimensional += summed_bytes(layer, group_, twice);
      if (plan_.tensor.divides_width()) {  // in each group that divides the features
        const std::int64_t ways = plan_.tensor.tensor_width;
        two_dimensional += ways * (plan_.mesh.tp / ways - 1) * once +
                           width_bytes(layer, group_, block.role != BlockRecompute::kNone);
      } else {
        microbatch += once;
      }
    }
    for (const Layer* const layer : {&layers_.embedding, &layers_.head}) {
      two_dimensional += width_bytes(*layer, group_, false) + summed_bytes(*layer, group_, false);
    }
    for (const PredictionModule& module : layers_.prediction) {
      microbatch += crossings(module.entry, group_, boundary, true, false) +
                    crossings(module.head, group_, boundary, false, false);
    }
    std::int64_t norms = 0;  // gradients of the S region, all-reduced once per step
    if (plan_.tensor.sequence_parallel && !plan_.tensor.divides_width()) {
      const std::int64_t parts = plan_.state.zero >= 2 ? copies_ * plan_.sharded_over() : 1;
      for_each_layer(layers_, [&](const Layer& layer) {
        norms += copies_ * 2 * part_of(layer.parameters(Region::kSequence), parts) *
                 plan_.update.gradient_bytes;
      });
      for (const SharedWeights& weights : shared_) {
        const std::int64_t parameters = sequence_parameters_of(weights, model_, layers_);
        const auto copied = static_cast<std::int64_t>(weights.holders.size()) - 1;
        norms += copied * 2 * part_of(parameters, parts) * plan_.update.gradient_bytes;
      }
    }
    const auto losses = static_cast<std::int64_t>(1 + layers_.prediction.size());
    for (const LayerOp& op : layers_.head.ops) {  // loss: fp32 values of every token, all-reduced
      microbatch += losses * 2 * op.tensor.reduced_values_per_token * plan_.tokens() * 4;
    }
    return ((plan_.mesh.tp - 1) * (microbatch * plan_.microbatches() + norms) +
            two_dimensional * plan_.microbatches()) *
           plan_.mesh.dp * plan_.mesh.cp;
  }

  std::int64_t of_replicas(const Replicated& state, int zero) const {
    // Counts the micro-batches that go through one copy of a stage.
    const std::int64_t microbatches = plan_.microbatches() / copies_;
    const std::int64_t g = plan_.update.gradient_bytes;
    const std::int64_t w = size_of(plan_.weights()).value();
    const std::int64_t groups = state.replicas / state.shards;
    const std::int64_t senders = groups * (state.shards - 1);
    const std::int64_t reductions = zero >= 2 ? microbatches : 1;
    const std::int64_t gathers =
        zero == 3 && plan_.state.reshard_after_forward ? 2 * microbatches : 1;
    std::int64_t sum = 0;
    for (const Replicated::Layer& layer : state.layers) {
      if (zero == 0) {
        sum += 2 * (state.replicas - 1) * layer.trained * g;
        continue;
      }
      const std::int64_t gathered = layer.trained + (zero == 3 ? layer.frozen : 0);
      sum += senders * padded(layer.trained, state.shards) * reductions * g;
      sum += senders * padded(gathered, state.shards) * gathers * w;
      sum += state.shards * 2 * (groups - 1) * part_of(layer.trained, state.shards) * g;
    }
    if (!state.copied.empty()) {
      Replicated copy{.layers = {}, .replicas = state.replicas, .shards = state.shards};
      for (const std::int64_t parameters : state.copied) copy.layers.push_back({parameters});
      sum += of_replicas(copy, std::min(zero, 1));
    }
    if (zero == 3 && plan_.state.reshard_after_forward) {
      for (const std::int64_t parameters : state.gathered_again) {
        sum += senders * padded(parameters, state.shards) * microbatches * w;
      }
    }
    return sum;
  }

  // Returns what Muon exchanges twice of matrices that replicas divide, 2 bytes a value.
  std::int64_t of_matrices(const Replicated& state, bool experts) const {
    if (plan_.training.optimizer != Optimizer::kMuon || plan_.state.zero < 3) return 0;
    std::int64_t values = 0;
    const auto add = [&](const Layer& layer) {
      for (const WeightMatrix& matrix : matrices_of(layer)) {
        if (matrix.routed == experts) values += matrix.values();
      }
    };
    for_each_layer(layers_, add);
    for (std::int64_t block = 0; block < layers_.vision.blocks; ++block) add(layers_.vision.block);
    add(layers_.vision.entry);
    add(layers_.vision.projector);
    return 2 * 2 * exchanged_values(values, state.shards) * (state.shards - 1) *
           (state.replicas / state.shards);
  }

  std::int64_t of_data() const {
    Replicated dense{.layers = {},
                     .replicas = copies_ * plan_.mesh.replicas(),
                     .shards = copies_ * plan_.sharded_over()};
    Replicated experts{
        .layers = {}, .replicas = copies_ * plan_.mesh.edp(), .shards = copies_ * plan_.mesh.edp()};
    for (const PlannedBlock& block : blocks_) {
      if (!has_own_visit(block.role)) continue;
      const Layer& layer = layers_.blocks[block.kind];
      const std::int64_t routed = layer.parameters(Region::kExpert) + layer.frozen(Region::kExpert);
      experts.gathered_again.push_back(routed);
      dense.gathered_again.push_back(layer.parameters() + layer.borrowed() + layer.frozen() -
                                     routed);
    }
    for_each_layer(layers_, [&](const Layer& layer) {
      const Replicated::Layer routed{layer.parameters(Region::kExpert),
                                     layer.frozen(Region::kExpert)};
      dense.layers.push_back({layer.parameters() - routed.trained, layer.frozen() - routed.frozen});
      experts.layers.push_back(routed);
    });
    const auto add_vision = [&dense](const Layer& layer) {
      dense.layers.push_back({layer.parameters(), layer.frozen()});
    };
    if (layers_.vision.blocks > 0) {
      add_vision(layers_.vision.entry);
      for (std::int64_t block = 0; block < layers_.vision.blocks; ++block) {
        add_vision(layers_.vision.block);
      }
      add_vision(layers_.vision.projector);
    }
    const std::int64_t table =
        shares_table(model_) ? layers_.embedding.ops.front().parameters.own : 0;
    std::int64_t summed = 0;  // over the holders of shared weights
    if (plan_.state.zero == 3) {
      // The table is gathered for every layer that reads it and reduced after each, as are weights
      // of an earlier layer.
      for (std::size_t block = 0; block < layers_.kind_of_block.size(); ++block) {
        dense.layers[1 + block].trained += layers_.blocks[layers_.kind_of_block[block]].borrowed();
      }
      const std::size_t head = 1 + layers_.kind_of_block.size();
      if (model_.embedding.tied) dense.layers[head].trained += table;
      for (std::size_t module = 0; module < layers_.prediction.size(); ++module) {
        dense.layers[head + 3 * module + 1].trained += table;
        dense.layers[head + 3 * module + 3].trained += unembedding_parameters(layers_);
      }
    }
    for (const SharedWeights& weights : shared_) {
      const std::int64_t parameters = parameters_of(weights, model_, layers_);
      const std::int64_t parts = plan_.state.zero >= 2 ? plan_.sharded_over() : 1;
      const auto copied = static_cast<std::int64_t>(weights.holders.size()) - 1;
      summed += 2 * copied * part_of(parameters, parts) * plan_.update.gradient_bytes *
                plan_.mesh.replicas();
      if (plan_.state.zero < 3) {
        dense.copied.insert(dense.copied.end(), static_cast<std::size_t>(copied), parameters);
      }
    }
    return plan_.mesh.tp *
               (of_replicas(dense, plan_.state.zero) + summed + of_matrices(dense, false)) +
           plan_.mesh.etp * plan_.mesh.ep *
               (of_replicas(experts, plan_.state.zero) + of_matrices(experts, true));
  }

  std::int64_t of_context() const {
    if (plan_.mesh.cp == 1) return 0;
    std::int64_t sum = 0;
    for (const PlannedBlock& block : blocks_) {
      const Again again =
          sent_again(layers_.blocks[block.kind], layers_.tensor_boundary, block.role);
      sum +=
          context_bytes(lowered_.attention[block.kind], plan_.mesh, plan_.tensor.cp_mode,
                        plan_.precision.communicated(), again.context) +
          state_bytes(layers_.blocks[block.kind], plan_.mesh, plan_.tensor.cp_mode, again.states);
    }
    return sum * plan_.microbatches() * plan_.mesh.tp * plan_.mesh.dp;
  }

  std::int64_t of_experts() const {
    if (plan_.mesh.ep * plan_.mesh.etp == 1) return 0;
    std::int64_t sum = 0;
    for (const PlannedBlock& block : blocks_) {
      const Layer& layer = layers_.blocks[block.kind];
      if (!layer.routing) continue;
      const Again again = sent_again(layer, layers_.tensor_boundary, block.role);
      sum += expert_bytes(*layer.routing, plan_.mesh, plan_.precision, exchange_, again.experts);
    }
    return sum * plan_.microbatches();
  }

  // Returns the bytes of the norm of all gradients: one fp32 value. With post-validation it goes
  // through each stage, then along the pipeline and back.
  std::int64_t of_norm() const {
    if (!plan_.update.clip_gradients) return 0;
    const bool alike = plan_.state.zero == 0 && plan_.mesh.ep == 1;
    const std::int64_t of_a_stage = alike ? plan_.mesh.tp : plan_.mesh.ranks() / plan_.mesh.pp;
    const std::int64_t members =
        plan_.update.post_validation ? of_a_stage : of_a_stage * plan_.mesh.pp;
    const std::int64_t reduced =
        plan_.mesh.ranks() / members * 2 * (members - 1) * size_of(DataType::kFp32).value();
    if (!plan_.update.post_validation) return reduced;
    return reduced +
           plan_.mesh.ranks() / plan_.mesh.pp * 2 * (plan_.mesh.pp - 1) * kGlobalState.value();
  }

  // Calls use(layer) for the first layer behind each boundary between stages. Only boundaries
  // between different ranks count: a V turns on one rank, behind every pp stages.
  template <typename Use>
  void for_each_boundary(const Use& use) const {
    std::int64_t layer = 0;
    const bool is_v = placement_of(plan_.pipeline) == Placement::kV;
    for (std::size_t stage = 0; stage + 1 < stages_.size(); ++stage) {
      layer += stages_[stage];
      const bool turns = is_v && static_cast<std::int64_t>(stage + 1) % plan_.mesh.pp == 0;
      if (!turns) use(layer);
    }
  }

  std::int64_t of_pipeline() const {
    if (plan_.mesh.pp == 1) return 0;
    std::int64_t bytes = 0;
    for_each_boundary(
        [&](std::int64_t layer) { bytes += message_size(model_, plan_, layers_, layer).value(); });
    return 2 * bytes * plan_.microbatches() * plan_.mesh.tp * plan_.mesh.cp * plan_.mesh.dp;
  }

  // Returns what tensor ranks gather of messages that came in shares.
  std::int64_t of_gathered_messages() const {
    if (!plan_.scatters_messages()) return 0;
    std::int64_t messages = 0;
    for_each_boundary([&](std::int64_t) { messages += 2 * plan_.microbatches(); });
    return messages * layers_.boundary.value() * (plan_.mesh.tp - 1) * plan_.mesh.cp *
           plan_.mesh.dp;
  }

  // Returns what context ranks gather in a pass, or pass round.
  std::int64_t of_context_of_pass() const {
    std::int64_t sum = 0;
    for_each_layer(layers_, [&sum, this](const Layer& layer) {
      for (const LayerOp& op : layer.ops) {
        sum += op.pass.gathered_before.value() + plan_.mesh.cp * op.pass.handed_round.value();
      }
    });
    return sum * (plan_.mesh.cp - 1) * plan_.mesh.tp * plan_.mesh.dp;
  }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  const LoweredModel& lowered_;
  const ModelLayers& layers_;
  const ExpertExchange& exchange_;
  TensorGroup group_;
  std::int64_t copies_;               // of each stage
  std::vector<std::int64_t> stages_;  // layers of each
  std::vector<SharedWeights> shared_;
  std::vector<PlannedBlock> blocks_{};
};

}  // namespace

std::array<Bytes, kMostAxes> planned_bytes_of_split(
    const ParallelPlan& whole, const ModelLayers& ends,
    const std::vector<PlannedMicrobatch>& microbatches) {
  std::int64_t tensor =
      TensorBytesOfPass(tensor_group(whole), whole.mesh.replicas(), ends).of_ends();
  Bytes expert;
  for (const PlannedMicrobatch& microbatch : microbatches) {
    const auto& [plan, layers] = microbatch;
    tensor += TensorBytesOfPass(tensor_group(plan), plan.mesh.replicas(), layers).of_blocks();
    for (const std::uint32_t kind : layers.kind_of_block) {
      const std::optional<TokenRouting>& routing = layers.blocks[kind].routing;
      if (!routing) continue;
      expert +=
          bytes_of_split_layer(plan.mesh, plan.precision, requests_of(plan).tokens(), *routing);
    }
  }
  return by_axis({{Axis::kTensor, tensor}, {Axis::kExpert, expert.value()}});
}

std::array<Bytes, kMostAxes> planned_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                           const LoweredModel& lowered,
                                           const ExpertExchange& exchange) {
  const PlannedBytes bytes(model, plan, lowered, exchange);
  return plan.is_inference() ? bytes.of_pass() : bytes.of_step();
}

}  // namespace stepsim
