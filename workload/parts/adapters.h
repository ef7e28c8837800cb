// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685): the model is frozen, and beside each
// projection of its blocks, x W, stands x A B with A of [in, rank] and B of [rank, out], which are
// all that is trained.
//
// A frozen matrix has no weight gradient, no gradient in memory and no state of the optimizer. Its
// input gradient stays. Frozen are also norms, biases, embedding, head, router and routed experts,
// which get no adapters, and projections that are given none. Held narrow (QLoRA, Dettmers et al.,
// arXiv 2305.14314) are the matrices of blocks, routed experts among them.
//
// Not modelled: messages of the adapters between tensor ranks (rank values a token), their dropout,
// and activations that software may drop because nothing frozen reads them in the backward.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "workload/parts/layer_op.h"

namespace stepsim {

// The projections of a block that may have adapters.
enum class AdapterPlace : std::uint8_t {
  kQkv,  // all in front of attention or of a state
  kOut,  // their last ones
  kMlp,  // of dense MLPs and shared experts
};
inline constexpr std::size_t kAdapterPlaces = 3;
std::string_view name_of(AdapterPlace place);  // "qkv"

struct Adapters {
  std::int64_t rank = 0;
  std::vector<AdapterPlace> places = {AdapterPlace::kQkv, AdapterPlace::kOut, AdapterPlace::kMlp};
  // Type in which the frozen matrices of blocks are held; a kernel makes them wide before each
  // matmul. Unset: as other weights.
  std::optional<DataType> frozen{};
};

// REQUIRES: rank >= 1; no prediction modules.
ModelLayers with_adapters(ModelLayers layers, const Adapters& adapters, const DataTypes& types);

// Returns the parameters of all adapters of a model that is not divided: rank x (in + out) for each
// projection that has one. REQUIRES: rank >= 1; model.kind is a transformer.
std::int64_t adapter_parameter_count(const ModelSpec& model, const Adapters& adapters);

}  // namespace stepsim
