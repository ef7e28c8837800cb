#include "schedules/lowering/stages/shared_weights.h"

#include <algorithm>
#include <set>

#include "schedules/plan/plan_schedule.h"
#include "workload/inference.h"

namespace stepsim {
namespace {

std::int32_t rank_of_stage(Placement placement, std::int64_t pp, std::int64_t stage) {
  const std::int64_t at = stage % pp;
  const bool goes_back = placement == Placement::kV && stage / pp % 2 == 1;
  return static_cast<std::int32_t>(goes_back ? pp - 1 - at : at);
}

// Returns the rank of the pipeline that has each layer.
std::vector<std::int32_t> ranks_of_layers(const std::vector<std::int64_t>& layers,
                                          Placement placement, std::int64_t pp) {
  std::vector<std::int32_t> ranks;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    ranks.resize(ranks.size() + static_cast<std::size_t>(layers[stage]),
                 rank_of_stage(placement, pp, static_cast<std::int64_t>(stage)));
  }
  return ranks;
}

// `ranks`: those of the layers.
void add_blocks(const ModelSpec& model, const std::vector<std::int32_t>& ranks,
                std::vector<SharedWeights>& shared) {
  const std::vector<std::optional<std::int64_t>> blocks = shared_blocks(model);
  for (std::int64_t block = 0; block < model.shared.blocks; ++block) {
    std::set<std::int32_t> holders;
    std::optional<std::int32_t> owner;
    for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
      if (blocks[layer] != block) continue;
      holders.insert(ranks[layer]);
      owner = owner.value_or(ranks[layer]);
    }
    if (holders.size() < 2) continue;
    shared.push_back({.name = "shared block " + std::to_string(block),
                      .block = block,
                      .holders = {holders.begin(), holders.end()},
                      .owner = *owner});
  }
}

// Returns the first layer that reads the weights and owns them, or does not.
const Layer& reader(std::int64_t block, bool borrows, const ModelSpec& model,
                    const ModelLayers& layers) {
  const std::vector<std::optional<std::int64_t>> blocks = shared_blocks(model);
  const auto begin = std::ranges::find(blocks, std::optional(block));
  const auto found = borrows ? std::find(begin + 1, blocks.end(), std::optional(block)) : begin;
  return layers.block(found - blocks.begin());
}

std::int64_t borrowed_of(const Layer& layer, std::optional<Region> region) {
  std::int64_t sum = 0;
  for (const LayerOp& op : layer.ops) {
    if (!region || op.region == *region) sum += op.parameters.borrowed;
  }
  return sum;
}

}  // namespace

bool SharedWeights::held_by(std::int32_t rank) const {
  return std::ranges::count(holders, rank) > 0;
}

bool shares_table(const ModelSpec& model) {
  return model.embedding.tied || model.prediction.modules > 0;
}

std::vector<std::optional<std::int64_t>> shared_blocks(const ModelSpec& model) {
  std::vector<std::optional<std::int64_t>> blocks(static_cast<std::size_t>(model.layers));
  if (model.shared.blocks == 0) return blocks;
  const std::string& pattern = model.mixer_pattern;
  std::int64_t before = 0;
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    if (pattern[layer % pattern.size()] == 'Z') blocks[layer] = before++ % model.shared.blocks;
  }
  return blocks;
}

std::vector<SharedWeights> shared_weights(const ModelSpec& model, const ParallelPlan& plan) {
  std::vector<SharedWeights> shared;
  const Placement placement = placement_of(plan.pipeline);
  if (plan.mesh.pp == 1 || placement == Placement::kBidirectional) return shared;
  const std::int32_t last = rank_of_stage(placement, plan.mesh.pp, stages_of(plan) - 1);
  if (shares_table(model) && last != 0) {
    shared.push_back({.name = "tied embedding", .holders = {0, last}, .owner = 0});
  }
  if (model.shared.blocks > 0) {
    const std::vector<std::int64_t> layers = layers_of_stages(plan, model.layers);
    add_blocks(model, ranks_of_layers(layers, placement, plan.mesh.pp), shared);
  }
  return shared;
}

std::int64_t parameters_of(const SharedWeights& weights, const ModelSpec& model,
                           const ModelLayers& layers) {
  if (weights.block) return borrowed_of(reader(*weights.block, true, model, layers), {});
  return layers.embedding.ops.empty() ? 0 : layers.embedding.ops.front().parameters.own;
}

std::int64_t sequence_parameters_of(const SharedWeights& weights, const ModelSpec& model,
                                    const ModelLayers& layers) {
  if (!weights.block) return 0;
  return borrowed_of(reader(*weights.block, true, model, layers), Region::kSequence);
}

Bytes pass_size_of(const SharedWeights& weights, const ModelSpec& model, const ModelLayers& layers,
                   const DataTypes& types) {
  if (!weights.block) {
    return parameters_of(weights, model, layers) * size_of(types.activations);
  }
  return weights_size(reader(*weights.block, false, model, layers), types) -
         weights_size(reader(*weights.block, true, model, layers), types);
}

}  // namespace stepsim
