// ServingSoftware is what a serving system brings beside its scheduler (catalog/engines): a
// communication library, kernels, and the time of its front.
//
//   const std::optional<ServingSoftware> software = find_serving_software("vllm");
//   if (software) prefer_kernels_of(*software, chip.serving);
//
// An engine brings the software of its name, unless another one, or "none", is named.
//
// Names of libraries and kernels are those of the catalog's libraries and chips.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

struct ServingSoftware {
  std::vector<std::string> names{};  // "vllm", "vllm-0.24"
  std::string engine{};
  Duration front_time{};                           // of its engine
  std::map<std::string, std::string> libraries{};  // by the library that chips have
  std::vector<std::string> decode_kernels{};       // best first
  std::vector<std::string> expert_kernels{};       // likewise
};

// Throws ConfigError with every problem of the catalog's files.
std::vector<ServingSoftware> load_serving_software();

// Returns nullopt if no entry has the name.
std::optional<ServingSoftware> find_serving_software(std::string_view name);

// Returns the first name of each entry.
std::vector<std::string> serving_software_names();

// Returns the software of this name, of the engine where `name` is empty; nullopt for "none", and
// where there is none.
std::optional<ServingSoftware> software_of(std::string_view name, std::string_view engine);

// Adds a problem of --software if there is no such name.
void check_software_name(std::string_view name, std::vector<Problem>& problems);

// Moves the software's kernels before those of others, as a plan takes the first that fits.
void prefer_kernels_of(const ServingSoftware& software, ServingKernels& kernels);

}  // namespace stepsim
