#include <array>
#include <string>

#include "import/torchtitan/torchtitan_import.h"

namespace stepsim {
namespace {

// Flavors that differ in the kernel of attention alone.
constexpr auto kKernelEndings =
    std::to_array<std::string_view>({"_flex", "_varlen", "_flex_attn", "_varlen_attn", "_irope"});

}  // namespace

const TrainerModel* find_flavor(std::string_view model, std::string_view flavor) {
  const auto exact = [&](std::string_view name) {
    return find_trainer_model("torchtitan", std::string(model) + " " + std::string(name));
  };
  if (const TrainerModel* const found = exact(flavor)) return found;
  for (const std::string_view ending : kKernelEndings) {
    if (flavor.ends_with(ending)) return exact(flavor.substr(0, flavor.size() - ending.size()));
  }
  return nullptr;
}

}  // namespace stepsim
