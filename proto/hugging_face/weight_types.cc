#include "proto/hugging_face/weight_types.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// Formats of so many bits, of floats or integers, with a scale for a group of so many weights.
std::string_view format_of(std::int64_t bits, bool is_float, std::int64_t group) {
  constexpr std::int64_t kGroupOfNvfp4 = 16;
  if (bits == 8) return is_float ? "fp8" : "int8";
  if (bits == 4 && is_float) return group == kGroupOfNvfp4 ? "nvfp4" : "mxfp4";
  return bits == 4 ? "int4" : "";
}

// Returns the type, or "" where it has said under its key what is wrong.
std::string_view type_of_bits(Config& config, std::string_view key, bool is_float,
                              std::int64_t bits, std::int64_t group) {
  const std::string_view type = format_of(bits, is_float, group);
  config.refuse_if(type.empty(), key, "must be 4 or 8, is " + std::to_string(bits));
  return type;
}

// compressed-tensors lists groups of layers, which have the same weights in what is published.
std::string_view compressed(Config& config) {
  Config groups = config.nested("config_groups");
  const std::string first = groups.first_key();
  config.refuse_if(first.empty(), "config_groups", "must hold a group of weights, is empty");
  if (first.empty()) return "";
  Config weights = groups.nested(first).nested("weights");
  const bool is_float = weights.choice_or("type", {"float", "int"}, "int") == "float";
  const std::int64_t bits = weights.integer_or("num_bits", 0);
  return type_of_bits(weights, "num_bits", is_float, bits, weights.integer_or("group_size", 0));
}

std::string_view fp8(Config& config) {
  const std::vector<std::int64_t> block = config.numbers("weight_block_size");
  const bool fine = block.empty() || (block.size() == 2 && block[0] >= 1 && block[1] >= 1);
  config.refuse_if(!fine, "weight_block_size",
                   "must be two whole numbers of at least 1: the rows and columns of a block");
  return block.empty() ? "fp8" : "fp8_block";
}

// ModelOpt's names: FP8, FP8_PB_WO, NVFP4, NVFP4_AWQ, W4A16_NVFP4, W4A16_AWQ, W4A8_MXFP4_FP8, ..
std::string_view type_of_algorithm(const std::string& name) {
  for (const auto& [part, type] :
       {std::pair{"NVFP4", "nvfp4"}, std::pair{"MXFP4", "mxfp4"}, std::pair{"W4A", "int4"},
        std::pair{"INT4", "int4"}, std::pair{"FP8", "fp8"}, std::pair{"INT8", "int8"},
        std::pair{"W8A8_SQ", "int8"}, std::pair{"W8A16", "int8"}}) {
    if (name.find(part) != std::string::npos) return type;
  }
  return "";
}

// Returns the algorithm of most of the matrices that a file of several algorithms lists.
std::string commonest_algorithm(Config& config) {
  std::map<std::string, int> counts;
  Config layers = config.nested("quantized_layers");
  for (const std::string& name : layers.keys()) {
    ++counts[layers.nested(name).text_or("quant_algo", "")];
  }
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& name_and_count) { return name_and_count.second; });
  return most == counts.end() ? "" : most->first;
}

std::string_view modelopt(Config& config) {
  std::string algorithm = config.text_or("quant_algo", "FP8");
  if (algorithm == "MIXED_PRECISION") algorithm = commonest_algorithm(config);
  const std::string_view type = type_of_algorithm(algorithm);
  config.refuse_if(type.empty(), "quant_algo",
                   "must name a type that is known: FP8, NVFP4, MXFP4, INT8, W4A16_AWQ; is \"" +
                       algorithm + "\"");
  return type;
}

std::string_view type_of(Config& config, const std::string& method) {
  if (method == "fp8") return fp8(config);
  if (method == "fbgemm_fp8") return "fp8";
  if (method == "mxfp4") return "mxfp4";
  if (method == "compressed-tensors") return compressed(config);
  if (method.starts_with("modelopt") || (method.empty() && config.has("quant_algo"))) {
    return modelopt(config);
  }
  for (const char* by_bits : {"gptq", "awq", "auto-round", "autoround", "auto_round"}) {
    if (!method.starts_with(by_bits) && !method.ends_with(by_bits)) continue;
    return type_of_bits(config, "bits", false, config.integer_or("bits", 4), 0);
  }
  if (method == "bitsandbytes") {
    const bool four = config.flag_or("load_in_4bit", false);
    return four || config.flag_or("_load_in_4bit", false) ? "int4" : "int8";
  }
  if (method == "eetq" || method == "experts_int8") return "int8";
  config.refuse("quant_method", "weight_type",
                "must be fp8, mxfp4, compressed-tensors, modelopt, gptq, awq, auto-round, "
                "bitsandbytes or eetq; is \"" +
                    method + "\"");
  return "";
}

}  // namespace

void read_weight_type(Config& config, file::Model& model) {
  if (!config.has("quantization_config")) return;
  Config quantization = config.nested("quantization_config");
  const std::string_view type = type_of(quantization, quantization.text_or("quant_method", ""));
  if (!type.empty()) model.set_weight_type(std::string(type));
}

}  // namespace stepsim
