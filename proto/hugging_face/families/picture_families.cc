// The text's model of models with pictures whose file names no text family that is read elsewhere.
// A wrapper whose text_config names its family needs no row.

#include <string>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// MiniCPM-V and MiniCPM-o: the version tells whose text model it is.
void read_minicpm_v(Config& config, file::Model& model) {
  const double version = config.number_or("version", 2.6);
  model.set_note("its vision part is not counted");
  if (config.has("scale_emb")) return read_minicpm(config, model);
  if (version == 2.6) return read_qwen2(config, model);
  if (version >= 4.5) return read_qwen3(config, model);
  read_llama(config, model);
}

// Llama 3.2 Vision: some layers attend to the picture in place of the text.
void read_mllama(Config& config, file::Model& model) {
  read_llama(config, model);
  if (config.layers("cross_attention_layers", 0, model.layers() - 1).empty()) return;
  model.set_note("its layers that attend to a picture are counted as attending to the text");
}

// ERNIE's models with pictures give a list: experts of the text, then those of pictures.
void read_ernie_vision(Config& config, file::Model& model) {
  Json of_text;
  Config text = config.with_first_entries(
      {"moe_num_experts", "moe_intermediate_size", "moe_layer_start_index", "moe_layer_end_index"},
      of_text);
  read_ernie_moe(text, model);
  config.take_asked(text);
  model.set_note("its experts of pictures are not counted");
}

constexpr HuggingFaceFamily kPictureFamilies[] = {
    {"deepseek_vl_v2", read_deepseek},
    {"ernie4_5_moe_vl", read_ernie_vision},
    {"ernie4_5_vl_moe", read_ernie_vision},
    {"ernie4_5_vl_moe_text", read_ernie_vision},
    {"llava", read_llama},
    {"llava_llama", read_llama},
    {"llava_mistral", read_mistral},
    {"llava_qwen", read_qwen2},
    {"minicpmo", read_minicpm_v},
    {"minicpmv", read_minicpm_v},
    {"minimax_m3_vl", read_minimax_m3},
    {"mllama_text_model", read_mllama},
    {"phi3_v", read_phi3},
    {"qwen2_audio", read_qwen2},
    {"qwen3_asr_text", read_qwen3},
};

}  // namespace

std::span<const HuggingFaceFamily> picture_families() {
  return kPictureFamilies;
}

}  // namespace stepsim
