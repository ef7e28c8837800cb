// What a table's serving framework stands for: the engine that schedules, the communication library
// and kernels that it brings, and the types that it computes in. Releases of 2025 and 2026.
//
//   framework                          engine   kernels
//   vllm, vllm (tpu), atom             vllm     triton's experts on Hopper, flashinfer-trtllm's
//                                               on Blackwell
//   sglang, dynamo-sglang, ...         sglang   the same
//   trtllm, trt, dynamo-trt, ...       trtllm   its own attention; flashinfer's experts
//
// Names of libraries are those of the catalog's chips and libraries.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/engines/engine_options.h"
#include "serving/engines/engine_table.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

struct ServingSoftware {
  const EngineRow* engine = &default_engine();
  EngineOptions options{};    // its defaults on chips of data centres
  std::string collectives{};  // "vllm-0.24"; the generation of chips follows
  std::vector<std::string_view> decode_kernels{};
  std::vector<std::string_view> expert_kernels{};  // best first
  bool narrows_cache = false;  // keeps keys and values of fp8 and fp4 models in fp8
};

// Returns nullopt if the name is unknown.
std::optional<ServingSoftware> serving_software(std::string_view framework);

// Returns the library of the software for a generation of chips whose own library is `of_chip`
// ("nccl-2.29-hopper"); `of_chip` where it has none for that.
std::string collectives_of(const ServingSoftware& software, const std::string& of_chip);

// Moves the software's kernels before those of others, as a plan takes the first that fits.
void prefer_kernels_of(const ServingSoftware& software, ServingKernels& kernels);

}  // namespace stepsim
