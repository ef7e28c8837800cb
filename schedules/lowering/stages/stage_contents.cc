#include "schedules/lowering/stages/stage_contents.h"

#include <algorithm>

#include "schedules/lowering/stages/shared_weights.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/inference.h"

namespace stepsim {
namespace {

std::int64_t table_of(const ModelLayers& layers) {
  return layers.embedding.ops.empty() ? 0 : layers.embedding.ops.front().parameters.own;
}

void add_unit(const LoweredLayer& layer, const std::string& name, StageChunk& chunk,
              std::optional<std::int32_t> block = {}, std::int64_t tied = 0) {
  if (layer.empty()) return;
  chunk.units.push_back({.layer = &layer, .name = name, .block = block, .tied_parameters = tied});
}

void add_vision(const LoweredModel& lowered, StageChunk& chunk) {
  if (lowered.vision.empty()) return;
  const VisionLayers& vision = lowered.layers.vision;
  add_unit(lowered.vision[0], vision.entry.name, chunk);
  for (std::int64_t block = 0; block < vision.blocks; ++block) {
    add_unit(lowered.vision[1], vision.block.name, chunk);
  }
  add_unit(lowered.vision[2], vision.projector.name, chunk);
}

// `before`: blocks in the stages before this one.
void add_blocks(const LoweredModel& lowered, const RecomputePlan& plan, std::int32_t before,
                std::int32_t count, StageChunk& chunk) {
  for (std::int32_t index = 0; index < count; ++index) {
    const std::uint32_t kind =
        lowered.layers.kind_of_block[static_cast<std::size_t>(before + index)];
    add_unit(lowered.blocks[kind].in(block_recompute(plan, index, count)),
             lowered.layers.blocks[kind].name, chunk, before + index,
             lowered.layers.blocks[kind].borrowed());
  }
}

void add_end(const ModelSpec& model, const LoweredModel& lowered, const RecomputePlan& plan,
             StageChunk& chunk) {
  const ModelLayers& layers = lowered.layers;
  const std::int64_t table = table_of(layers);
  add_unit(lowered.head, "head", chunk, {}, model.embedding.tied ? table : 0);
  for (std::size_t module = 0; module < lowered.prediction.size(); ++module) {
    const PredictionModule& layer = layers.prediction[module];
    add_unit(lowered.prediction[module].entry, layer.entry.name, chunk, {}, table);
    add_unit(lowered.blocks[layer.kind_of_block].in(block_recompute(plan, 0, 1)),
             layers.blocks[layer.kind_of_block].name, chunk,
             static_cast<std::int32_t>(model.layers) + static_cast<std::int32_t>(module));
    add_unit(lowered.prediction[module].head, layer.head.name, chunk, {},
             unembedding_parameters(layers));
  }
}

// Returns the weights of a pass: of the layers from `first` up to `end`, and of the stage's ends.
Bytes weights_of(const ModelSpec& model, const ModelLayers& layers, std::int64_t first,
                 std::int64_t end, const Stage& stage) {
  const DataTypes types = data_types(stage.plan);
  Bytes sum;
  for (std::int64_t layer = first; layer < end; ++layer) {
    sum += weights_size(layers.block(layer), types);
  }
  if (stage.holds_first()) {
    sum += weights_size(layers.embedding, types) + weights_size(layers.vision.entry, types) +
           layers.vision.blocks * weights_size(layers.vision.block, types) +
           weights_size(layers.vision.projector, types);
  }
  if (stage.holds_last()) sum += weights_size(layers.head, types);
  for (const SharedWeights& weights : shared_weights(model, stage.plan)) {
    if (!weights.held_by(stage.number) || weights.owner == stage.number) continue;
    sum += pass_size_of(weights, model, layers, types);
  }
  return sum;
}

// Returns whether another chunk of the rank adds gradients to what the unit owns: a table that the
// head reads, or a block that layers share.
bool waits_for_chunks(const StageUnit& unit, const ModelSpec& model,
                      const std::vector<std::optional<std::int64_t>>& blocks, const Stage& stage,
                      const StageChunk& chunk) {
  if (chunk.stage == 0 && unit.is_embedding) {
    return shares_table(model) && stage_count(stage.schedule) > 1 && stage.holds_last();
  }
  const auto block_of = [&](const StageUnit& one) -> std::optional<std::int64_t> {
    if (!one.block || *one.block >= model.layers) return {};
    return blocks[static_cast<std::size_t>(*one.block)];
  };
  const std::optional<std::int64_t> block = block_of(unit);
  if (!block || unit.tied_parameters > 0) return false;
  return std::ranges::any_of(stage.chunks, [&](const StageChunk& other) {
    return &other != &chunk && std::ranges::any_of(other.units, [&](const StageUnit& u) {
      return block_of(u) == block;
    });
  });
}

// Returns the unit of the stage that first reads a copy of weights.
const StageUnit* first_reader(const SharedWeights& weights,
                              const std::vector<std::optional<std::int64_t>>& blocks,
                              const Stage& stage) {
  if (!weights.block) return &stage.chunks.back().units.back();
  for (const StageChunk& chunk : stage.chunks) {
    for (const StageUnit& unit : chunk.units) {
      if (unit.block && blocks[static_cast<std::size_t>(*unit.block)] == weights.block)
        return &unit;
    }
  }
  return nullptr;
}

void fill_shared(const ModelSpec& model, const ModelLayers& layers, Stage& stage) {
  const std::vector<std::optional<std::int64_t>> blocks = shared_blocks(model);
  for (StageChunk& chunk : stage.chunks) {
    for (StageUnit& unit : chunk.units) {
      unit.waits_for_chunks = waits_for_chunks(unit, model, blocks, stage, chunk);
    }
  }
  const std::vector<SharedWeights> shared = shared_weights(model, stage.plan);
  for (std::size_t number = 0; number < shared.size(); ++number) {
    const SharedWeights& weights = shared[number];
    if (!weights.held_by(stage.number)) continue;
    const bool is_copy = weights.owner != stage.number;
    stage.shared.push_back({.name = weights.name,
                            .number = number,
                            .parameters = parameters_of(weights, model, layers),
                            .sequence_parameters = sequence_parameters_of(weights, model, layers),
                            .is_copy = is_copy,
                            .reader = is_copy ? first_reader(weights, blocks, stage) : nullptr});
  }
}

}  // namespace

std::vector<std::int32_t> first_blocks(const std::vector<std::int64_t>& layers) {
  std::vector<std::int32_t> first{0};
  for (const std::int64_t count : layers) {
    first.push_back(first.back() + static_cast<std::int32_t>(count));
  }
  return first;
}

void fill_stage(const ModelSpec& model, const LoweredModel& lowered, Stage& stage) {
  const std::int32_t stages = stage_count(stage.schedule);
  const std::vector<std::int32_t> first_block =
      first_blocks(layers_of_stages(stage.plan, model.layers));
  for (std::int32_t index = 0; index < stage.schedule.chunks; ++index) {
    StageChunk& chunk = stage.chunks.emplace_back();
    chunk.stage = stage_of(stage.schedule, stage.number, index);
    const auto at = static_cast<std::size_t>(chunk.stage);
    if (chunk.stage == 0) {
      add_vision(lowered, chunk);
      const std::size_t before = chunk.units.size();
      add_unit(lowered.embedding, "embedding", chunk);
      if (chunk.units.size() > before) chunk.units.back().is_embedding = true;
    }
    add_blocks(lowered, stage.plan.recomputing, first_block[at],
               first_block[at + 1] - first_block[at], chunk);
    if (chunk.stage == stages - 1) add_end(model, lowered, stage.plan.recomputing, chunk);
  }
  fill_shared(model, lowered.layers, stage);
  if (stage.plan.is_inference()) {
    const auto at = static_cast<std::size_t>(stage.number);
    stage.cache =
        cache_of_layers(model, requests_of(stage.plan), stage.plan.mesh.tp, stage.plan.cache.split,
                        first_block[at], first_block[at + 1], stage.plan.mesh.cp);
    stage.weights = weights_of(model, lowered.layers, first_block[at], first_block[at + 1], stage);
  }
}

}  // namespace stepsim
