#include "analysis/accuracy/serving_software.h"

#include <algorithm>
#include <string>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

using namespace literals;

// From a request's arrival to its place in the queue, and of its first token to the client: fitted
// by scripts/fit_front_time.py to prompts of 1,024 tokens in three runs of InferenceMAX, which
// docs/accuracy.md names. SGLang's are those of vLLM, as its rows of that run have other models.
constexpr Duration kVllmFront = 25ms;
constexpr Duration kTrtllmFront = 31ms;

ServingSoftware of_engine(std::string_view name) {
  const EngineRow& engine = *find_engine(name);
  ServingSoftware software{.engine = &engine, .options = engine.defaults};
  software.options.cache.prefix_cache = false;  // benchmarks draw prompts at random
  return software;
}

ServingSoftware vllm() {
  ServingSoftware software = of_engine("vllm");
  software.collectives = "vllm-0.24";
  software.options.host.front_time = kVllmFront;
  software.decode_kernels = {"vllm"};
  software.expert_kernels = {"triton", "flashinfer-trtllm"};
  return software;
}

ServingSoftware sglang() {
  ServingSoftware software = of_engine("sglang");
  software.collectives = "sglang-0.5";
  software.options.host.front_time = kVllmFront;
  software.decode_kernels = {"vllm"};
  software.expert_kernels = {"triton", "flashinfer-trtllm"};
  return software;
}

ServingSoftware trtllm() {
  ServingSoftware software = of_engine("trtllm");
  software.collectives = "trtllm-1.3";
  software.options.host.front_time = kTrtllmFront;
  software.decode_kernels = {"trtllm"};
  software.expert_kernels = {"flashinfer-trtllm", "flashinfer-cutlass", "triton"};
  software.narrows_cache = true;
  return software;
}

template <class Entry>
void prefer(const std::vector<std::string_view>& names, std::vector<Entry>& entries) {
  const auto rank = [&names](const Entry& entry) {
    return std::ranges::find(names, std::string_view(entry.library)) - names.begin();
  };
  std::ranges::stable_sort(entries, {}, rank);
}

}  // namespace

std::optional<ServingSoftware> serving_software(std::string_view framework) {
  const std::string name = in_small_letters(framework);
  if (has(name, "trt") || has(name, "tensorrt")) return trtllm();
  if (has(name, "sglang")) return sglang();
  if (has(name, "vllm") || has(name, "llm-d") || name == "atom") return vllm();
  if (has(name, "jetstream")) return of_engine("jetstream");
  return std::nullopt;
}

std::string collectives_of(const ServingSoftware& software, const std::string& of_chip) {
  if (software.collectives.empty()) return of_chip;
  for (const std::string_view generation : {"-hopper", "-blackwell"}) {
    if (of_chip.ends_with(generation)) return software.collectives + std::string(generation);
  }
  return of_chip;
}

void prefer_kernels_of(const ServingSoftware& software, ServingKernels& kernels) {
  prefer(software.decode_kernels, kernels.decode);
  prefer(software.decode_kernels, kernels.latent_decode);
  prefer(software.expert_kernels, kernels.experts);
}

}  // namespace stepsim
