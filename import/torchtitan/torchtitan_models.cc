#include <algorithm>
#include <array>
#include <string>

#include "import/torchtitan/torchtitan_import.h"

namespace stepsim {
namespace {

// Sizes of flavors that the catalog does not have are facts of torchtitan's model registries.
constexpr std::array kFlavors = {
    TorchtitanFlavor{"llama3", "debugmodel", "",
                     "layers=6,hidden=256,intermediate=768,heads=16,vocabulary=2048"},
    TorchtitanFlavor{"llama3", "1B", "llama3.2-1b", ""},
    TorchtitanFlavor{"llama3", "3B", "llama3.2-3b", ""},
    TorchtitanFlavor{"llama3", "8B", "llama3.1-8b", ""},
    TorchtitanFlavor{"llama3", "70B", "llama3.1-70b", ""},
    TorchtitanFlavor{"llama3", "405B", "llama3.1-405b", ""},
    TorchtitanFlavor{"llama4", "17bx16e", "llama4-scout", ""},
    TorchtitanFlavor{"llama4", "17bx128e", "llama4-maverick", ""},
    TorchtitanFlavor{
        "deepseek_v3", "debugmodel", "",
        "layers=6,hidden=256,intermediate=1024,heads=16,vocabulary=2048,latent.kv_rank=512,"
        "latent.nope_dim=128,latent.rope_dim=64,latent.v_dim=128,experts.routed=8,"
        "experts.per_token=3,experts.intermediate=256,experts.shared_intermediate=512,"
        "experts.first_dense=1"},
    TorchtitanFlavor{"deepseek_v3", "16B", "deepseek-v2-lite", ""},
    TorchtitanFlavor{"deepseek_v3", "236B", "deepseek-v2", ""},
    TorchtitanFlavor{"deepseek_v3", "671B", "deepseek-v3", "prediction_modules=0"},
    TorchtitanFlavor{"qwen3", "debugmodel", "",
                     "layers=8,hidden=256,intermediate=3072,heads=16,kv_heads=8,head_dim=128,"
                     "vocabulary=2048,tied_embeddings=true,qk_norm=true"},
    TorchtitanFlavor{"qwen3", "0.6B", "qwen3-0.6b", ""},
    TorchtitanFlavor{"qwen3", "1.7B", "qwen3-1.7b", ""},
    TorchtitanFlavor{"qwen3", "4B", "",
                     "layers=36,hidden=2560,intermediate=9728,heads=32,kv_heads=8,head_dim=128,"
                     "vocabulary=151936,tied_embeddings=true,qk_norm=true"},
    TorchtitanFlavor{"qwen3", "8B", "qwen3-8b", ""},
    TorchtitanFlavor{"qwen3", "14B", "qwen3-14b", ""},
    TorchtitanFlavor{"qwen3", "32B", "qwen3-32b", ""},
    TorchtitanFlavor{"qwen3", "debugmodel_moe", "",
                     "layers=8,hidden=256,heads=16,kv_heads=8,head_dim=128,vocabulary=2048,"
                     "qk_norm=true,experts.routed=64,experts.per_token=8,experts.intermediate=768"},
    TorchtitanFlavor{"qwen3", "30B-A3B", "qwen3-30b-a3b", ""},
    TorchtitanFlavor{"qwen3", "235B-A22B", "qwen3-235b-a22b", ""},
    TorchtitanFlavor{"gpt_oss", "20b", "gpt-oss-20b", ""},
    TorchtitanFlavor{"gpt_oss", "120b", "gpt-oss-120b", ""},
};

// Flavors that differ in the kernel of attention alone.
constexpr auto kKernelEndings =
    std::to_array<std::string_view>({"_flex", "_varlen", "_flex_attn", "_varlen_attn", "_irope"});

}  // namespace

const TorchtitanFlavor* find_flavor(std::string_view model, std::string_view flavor) {
  const auto exact = [&](std::string_view name) {
    const auto* const found = std::ranges::find_if(kFlavors, [&](const TorchtitanFlavor& known) {
      return known.model == model && known.flavor == name;
    });
    return found == kFlavors.end() ? nullptr : &*found;
  };
  if (const TorchtitanFlavor* const found = exact(flavor)) return found;
  for (const std::string_view ending : kKernelEndings) {
    if (flavor.ends_with(ending)) return exact(flavor.substr(0, flavor.size() - ending.size()));
  }
  return nullptr;
}

std::vector<std::string> torchtitan_flavors() {
  std::vector<std::string> names;
  for (const TorchtitanFlavor& known : kFlavors) {
    names.push_back(std::string(known.model) + " " + std::string(known.flavor));
  }
  return names;
}

}  // namespace stepsim
