// The families of models by kind. Each file has a table of its families and how they are read:
// hugging_face_families.h puts them together.

#pragma once

#include <span>

#include "proto/hugging_face/families/hugging_face_families.h"

namespace stepsim {

std::span<const HuggingFaceFamily> dense_families();
std::span<const HuggingFaceFamily> gpt_families();
std::span<const HuggingFaceFamily> searched_families();
std::span<const HuggingFaceFamily> expert_families();
std::span<const HuggingFaceFamily> state_families();
std::span<const HuggingFaceFamily> linear_families();
std::span<const HuggingFaceFamily> picture_families();
std::span<const HuggingFaceFamily> encoder_families();
std::span<const HuggingFaceFamily> compressed_families();

// Shared by files of families.
void read_llama(HuggingFaceConfig& config, file::Model& model);
void read_mistral(HuggingFaceConfig& config, file::Model& model);
void read_phi3(HuggingFaceConfig& config, file::Model& model);
void read_qwen2(HuggingFaceConfig& config, file::Model& model);
void read_qwen3(HuggingFaceConfig& config, file::Model& model);
void read_minicpm(HuggingFaceConfig& config, file::Model& model);
void read_bailing(HuggingFaceConfig& config, file::Model& model);
void read_deepseek(HuggingFaceConfig& config, file::Model& model);
void read_ernie_moe(HuggingFaceConfig& config, file::Model& model);
void read_minimax_m3(HuggingFaceConfig& config, file::Model& model);

// Shared by Qwen's dense models and those with experts.
void read_qwen_window(HuggingFaceConfig& config, file::Model& model);
void read_qwen3_attention(HuggingFaceConfig& config, file::Model& model);

}  // namespace stepsim
