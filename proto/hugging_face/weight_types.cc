#include "proto/hugging_face/weight_types.h"

#include <optional>
#include <string>
#include <string_view>

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

// compressed-tensors lists groups of layers, which have the same weights in what is published.
std::string_view compressed(Config& config) {
  Config groups = config.nested("config_groups");
  const std::string first = groups.first_key();
  if (first.empty()) return "";
  Config weights = groups.nested(first).nested("weights");
  return format_of(weights.integer_or("num_bits", 0), weights.text_or("type", "int") == "float",
                   weights.integer_or("group_size", 0));
}

std::string_view modelopt(Config& config) {
  const std::string algorithm = config.text_or("quant_algo", "");
  if (algorithm == "FP8") return "fp8";
  if (algorithm == "NVFP4") return "nvfp4";
  return "";
}

std::string_view type_of(Config& config, const std::string& method) {
  if (method == "fp8") return config.numbers("weight_block_size").empty() ? "fp8" : "fp8_block";
  if (method == "fbgemm_fp8") return "fp8";
  if (method == "mxfp4") return "mxfp4";
  if (method == "compressed-tensors") return compressed(config);
  if (method == "modelopt") return modelopt(config);
  if (method == "gptq" || method == "awq") {
    return format_of(config.integer_or("bits", 4), false, 0);
  }
  if (method == "bitsandbytes") return config.flag_or("load_in_4bit", false) ? "int4" : "int8";
  return "";
}

}  // namespace

void read_weight_type(Config& config, file::Model& model) {
  if (!config.has("quantization_config")) return;
  Config quantization = config.nested("quantization_config");
  const std::string method = quantization.text_or("quant_method", "");
  const std::string_view type = type_of(quantization, method);
  if (type.empty()) {
    quantization.refuse("quant_method", "weight_type",
                        "must be fp8, mxfp4, compressed-tensors, modelopt, gptq, awq or "
                        "bitsandbytes, with weights of 8 or 4 bits; is \"" +
                            method + "\"");
    return;
  }
  model.set_weight_type(std::string(type));
}

}  // namespace stepsim
