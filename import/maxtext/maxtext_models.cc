#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "import/maxtext/maxtext_import.h"
#include "proto/catalog/catalog.h"

namespace stepsim {
namespace {

constexpr auto kOtherModelNames = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"deepseek2-16b", "deepseek-v2-lite"},
     {"deepseek2-236b", "deepseek-v2"},
     {"deepseek3-671b", "deepseek-v3"},
     {"deepseek3-671b-batchsplit", "deepseek-v3"},
     {"deepseek3-671b-2dfsdp", "deepseek-v3"},
     {"deepseek3.2-671b", "deepseek-v3.2"},
     {"llama4-17b-16e", "llama4-scout"},
     {"llama4-17b-128e", "llama4-maverick"},
     {"kimi-k2-1t", "kimi-k2"},
     {"qwen3-480b-a35b", "qwen3-coder-480b-a35b"},
     {"qwen3-30b-a3b-base", "qwen3-30b-a3b"},
     {"qwen3-8b-base", "qwen3-8b"},
     {"qwen3-14b-base", "qwen3-14b"},
     {"gemma4-26b", "gemma4-26b-a4b"},
     {"olmo3-7b-pt", "olmo3-7b"},
     {"olmo3-32b", "olmo3.1-32b"}});

}  // namespace

std::string maxtext_model(std::string_view model_name) {
  const auto other =
      std::ranges::find(kOtherModelNames, model_name, [](const auto& row) { return row.first; });
  const std::string name(other == kOtherModelNames.end() ? model_name : other->second);
  return find(CatalogKind::kModel, name).found ? name : "";
}

std::optional<MaxtextScales> maxtext_scales(std::int64_t scale) {
  constexpr std::int64_t kMost = 1 << 20;
  const bool is_power =
      scale >= 1 && scale <= kMost && std::has_single_bit(static_cast<std::uint64_t>(scale));
  if (!is_power) return std::nullopt;
  const int log = std::countr_zero(static_cast<std::uint64_t>(scale));
  const int third = log / 3;
  const int rest = log % 3;
  const auto power = [](int exponent) { return std::int64_t{1} << exponent; };
  return MaxtextScales{.width = power(third + (rest > 1 ? 1 : 0)),
                       .heads = power(third + (rest > 0 ? 1 : 0)),
                       .mlp = power(third + (rest > 0 ? 1 : 0)),
                       .layers = power(third)};
}

}  // namespace stepsim
