// Weights that layers of several pipeline ranks read: an embedding's table that the last stage
// reads too, and blocks that layers share (SharedSpec). The rank of the first such layer owns them;
// each other rank holds one copy, which it updates as the owner does. Gradients of all holders are
// summed once a step, as Megatron-LM does with tied embeddings (arXiv 2104.04473, section 4).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "workload/model/model_spec.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

struct SharedWeights {
  std::string name;                       // "tied embedding", "shared block 0"
  std::optional<std::int64_t> block{};    // of those that layers share; unset: the table
  std::vector<std::int32_t> holders;      // ranks of the pipeline, ascending, at least two
  std::int32_t owner = 0;                 // one of them
  bool held_by(std::int32_t rank) const;  // O(holders)
};

// Returns whether the last stage reads the embedding's table, which the first stage owns.
bool shares_table(const ModelSpec& model);

// Returns the number of the block whose weights a layer reads; nullopt if it shares none. Cost:
// O(layers) for all layers together.
std::vector<std::optional<std::int64_t>> shared_blocks(const ModelSpec& model);

// Returns the weights that more than one rank of the pipeline holds. The two copies of a stage in a
// bidirectional schedule are replicas: they share nothing.
std::vector<SharedWeights> shared_weights(const ModelSpec& model, const ParallelPlan& plan);

// Returns the number of such weights on one tensor rank, those of the S region alone, and their
// bytes in a pass of inference.
std::int64_t parameters_of(const SharedWeights& weights, const ModelSpec& model,
                           const ModelLayers& layers);
std::int64_t sequence_parameters_of(const SharedWeights& weights, const ModelSpec& model,
                                    const ModelLayers& layers);
Bytes pass_size_of(const SharedWeights& weights, const ModelSpec& model, const ModelLayers& layers,
                   const DataTypes& types);

}  // namespace stepsim
