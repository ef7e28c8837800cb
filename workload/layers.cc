#include "workload/layers.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <iterator>
#include <utility>

#include "workload/embedding.h"
#include "workload/experts.h"
#include "workload/head.h"
#include "workload/layer_part.h"
#include "workload/mixer.h"
#include "workload/mlp.h"
#include "workload/mlp_stack.h"
#include "workload/prediction.h"
#include "workload/vision.h"

namespace stepsim {
namespace {

std::string_view word_for(Mixer mixer) {
  constexpr std::array<std::string_view, kMixers> kWords = {
      "mlp ",     "global ",  "local ",  "state ",      "state and attention ", "sparse ",
      "encoder ", "decoder ", "shared ", "compressed ", "heavily compressed "};
  return kWords[static_cast<std::size_t>(mixer)];
}

std::string_view word_for(MlpKind mlp) {
  constexpr std::array<std::string_view, 3> kWords = {"mixer ", "dense ", "expert "};
  return kWords[static_cast<std::size_t>(mlp)];
}

// Returns "block" and, if there are several kinds, the special features of this one.
std::string name_of(const BlockKind& kind, const std::vector<BlockKind>& kinds) {
  const auto differ = [&](auto property) {
    return std::ranges::any_of(kinds, [&](const BlockKind& other) {
      return std::invoke(property, other) != std::invoke(property, kind);
    });
  };
  std::string name;
  if (differ(&BlockKind::mixer)) name += word_for(kind.mixer);
  const bool is_half = kind.mixer == Mixer::kNone;
  if (differ(&BlockKind::mlp) && !(is_half && kind.mlp == MlpKind::kDense)) {
    name += word_for(kind.mlp);
  }
  if (kind.shares) name += "sharing ";
  if (kind.borrows) name += "borrowing ";
  if (kind.lends && differ(&BlockKind::lends)) name += "lending ";
  if (kind.mlp_width > 0 && differ(&BlockKind::mlp_width)) {
    name += std::to_string(kind.mlp_width) + " wide ";
  }
  return name + "block";
}

// The layers behind the encoder keep its result once, together.
void lend_result(const Part& part, LayerOp& op) {
  op.saved.lent = part.own_stream();
  op.saved.total += op.saved.lent;
}

Layer block_layer(const ModelSpec& model, const Shard& shard, const BlockKind& kind,
                  std::string name) {
  const ModelSpec own = as_in(model, kind);
  const Part part = part_of_model(own, shard);
  Layer layer{.name = std::move(name), .ops = mixer_branch(part, kind)};
  std::vector<LayerOp> second;
  if (kind.mlp == MlpKind::kExperts) second = expert_branch(part);
  if (kind.mlp == MlpKind::kDense) second = mlp_branch(part);
  std::ranges::move(second, std::back_inserter(layer.ops));
  if (kind.mlp == MlpKind::kExperts) layer.routing = token_routing(part);
  if (model.embedding.of_layers > 0) {
    std::ranges::move(layer_embedding_branch(part), std::back_inserter(layer.ops));
  }
  if (kind.mixer == Mixer::kTwoSided && kind.lends) lend_result(part, layer.ops.back());
  return layer;
}

// Sums parameters of a sort over the ops of a region, or of all.
std::int64_t sum_of(const std::vector<LayerOp>& ops, std::int64_t OpParameters::*count,
                    std::optional<Region> region = {}) {
  std::int64_t sum = 0;
  for (const LayerOp& op : ops) sum += !region || op.region == *region ? op.parameters.*count : 0;
  return sum;
}

}  // namespace

DataTypes all_of_type(DataType type) {
  return {.weights = type,
          .activations = type,
          .matmul = type,
          .communication = type,
          .dispatch = type,
          .combine = type};
}

Bytes crossing_as(Bytes bytes, DataType crosses_in, std::optional<DataType> type) {
  if (!type || bits_of(*type) >= bits_of(crosses_in)) return bytes;
  return bytes_of(bytes.value() / size_of(crosses_in).value(), *type);
}

const Kernel* weights_matmul(const LayerOp& op) {
  const auto is_matmul = [](const Kernel& kernel) { return kernel.kind == KernelKind::kMatmul; };
  if (std::ranges::none_of(op.weight_gradient, is_matmul)) return nullptr;
  const auto found = std::find_if(op.forward.rbegin(), op.forward.rend(), is_matmul);
  return found == op.forward.rend() ? nullptr : &*found;
}

std::vector<WeightMatrix> matrices_of(const Layer& layer) {
  std::vector<WeightMatrix> matrices;
  for (const LayerOp& op : layer.ops) {
    const Kernel* const kernel = weights_matmul(op);
    if (kernel == nullptr || op.name.role() == OpRole::kHead) continue;
    if (op.parameters.own == 0) continue;  // another layer owns them, or they are frozen
    matrices.push_back({.rows = kernel->n,
                        .columns = kernel->k,
                        .count = op.parameters.own / (kernel->n * kernel->k),
                        .routed = op.region == Region::kExpert});
  }
  return matrices;
}

std::int64_t Layer::parameters() const {
  return sum_of(ops, &OpParameters::own);
}

std::int64_t Layer::parameters(Region region) const {
  return sum_of(ops, &OpParameters::own, region);
}

std::int64_t Layer::borrowed() const {
  return sum_of(ops, &OpParameters::borrowed);
}

Bytes Layer::lent() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved.lent;
  return sum;
}

std::int64_t Layer::frozen() const {
  return sum_of(ops, &OpParameters::frozen);
}

std::int64_t Layer::frozen(Region region) const {
  return sum_of(ops, &OpParameters::frozen, region);
}

Bytes Layer::saved() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved.total;
  return sum;
}

std::int64_t unembedding_parameters(const ModelLayers& layers) {
  for (const LayerOp& op : layers.head.ops) {
    if (op.name != OpName("unembedding")) continue;
    return op.parameters.own > 0 ? op.parameters.own : layers.embedding.ops.front().parameters.own;
  }
  return 0;
}

Bytes handed_on(const ModelSpec& model, const ModelLayers& layers, const Shard& shard,
                std::int64_t layer) {
  if (model.kind == ModelKind::kMlpStack) return Bytes(0);
  const Part part = part_of_model(model, shard);
  const std::int64_t tokens =
      layers.boundary.value() / (model.residual_streams() * part.size(model.hidden).value());
  const std::int64_t own_tokens = part.gathers() ? tokens / shard.tensor : tokens;
  Bytes bytes = part.size(own_tokens * model.embedding.of_layers * (model.layers - layer));
  if (model.mixer_pattern.empty()) return bytes;
  // The last layer of each kind before the boundary, if the first one behind it reads from it.
  for (const Mixer mixer : {Mixer::kGlobal, Mixer::kLocal, Mixer::kSparse}) {
    std::int64_t next = layer, owner = layer - 1;
    while (next < model.layers && kind_of(model, next).mixer != mixer) ++next;
    if (next == model.layers || !kind_of(model, next).shares) continue;
    const auto owns = [&](const BlockKind& kind) { return kind.mixer == mixer && !kind.shares; };
    while (owner > 0 && !owns(kind_of(model, owner))) --owner;
    const std::int64_t choice = tokens * model.indexer.top_k * kTokenIdBytes;
    bytes += mixer == Mixer::kSparse ? Bytes(choice) : layers.block(owner).lent();
  }
  // Shared blocks read the embedding's output.
  for (std::int64_t later = layer; model.shared.blocks > 0 && later < model.layers; ++later) {
    if (kind_of(model, later).mixer != Mixer::kShared) continue;
    bytes += part.size(own_tokens * model.hidden);
    break;
  }
  const auto decodes = [&](std::int64_t at) { return kind_of(model, at).mixer == Mixer::kCross; };
  if (layer < model.layers && decodes(layer) && decodes(layer - 1)) {
    bytes += part.size(own_tokens * model.hidden);
  }
  return bytes;
}

ModelLayers build_layers(const ModelSpec& model, const Shard& shard) {
  assert(check(model).empty());
  if (model.kind == ModelKind::kMlpStack) return build_mlp_stack(model, shard);
  const Part part = part_of_model(model, shard);
  ModelLayers layers{
      .vision = shard.picture_tokens > 0 ? vision_layers(model, shard) : VisionLayers{},
      .embedding = embedding_layer(part),
      .head = head_layer(part),
      .boundary = model.residual_streams() * part.stream(),
      .tensor_boundary = part.tokens * part.hidden() * size_of(shard.types.communication)};
  const std::vector<BlockKind> kinds = kinds_of(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto found = std::ranges::find(kinds, kind_of(model, layer));
    layers.kind_of_block.push_back(static_cast<std::uint32_t>(found - kinds.begin()));
  }
  for (const BlockKind& kind : kinds) {
    layers.blocks.push_back(block_layer(model, shard, kind, name_of(kind, kinds)));
  }
  const auto prediction_kind = std::ranges::find(kinds, prediction_kind_of(model)) - kinds.begin();
  for (std::int64_t module = 0; module < model.prediction.modules; ++module) {
    layers.prediction.push_back({.entry = prediction_entry_layer(part),
                                 .kind_of_block = static_cast<std::uint32_t>(prediction_kind),
                                 .head = prediction_head_layer(part)});
  }
  return layers;
}

}  // namespace stepsim
