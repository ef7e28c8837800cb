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
#include "workload/mixers/mixer.h"
#include "workload/mlp_stack.h"
#include "workload/parts/layer_part.h"
#include "workload/parts/mlp.h"
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

}  // namespace

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
