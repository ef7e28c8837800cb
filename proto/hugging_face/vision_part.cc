#include "proto/hugging_face/vision_part.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "proto/hugging_face/families/hugging_face_config.h"
#include "proto/messages/message_fields.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

constexpr std::array<std::string_view, 8> kQwen = {
    "qwen3_vl",        "qwen3_vl_moe",        "qwen3_5",        "qwen3_5_moe",
    "qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_5_vision", "qwen3_5_moe_vision"};

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

bool is_qwen(const Json& object) {
  return std::ranges::count(kQwen, text_at(object, "model_type")) > 0;
}

// What the families call the sizes of their vision parts.
struct VisionSize {
  const char* field;
  const char* qwen;
  const char* moonvit;
};
constexpr std::array kSizes = {
    VisionSize{"vision.layers", "depth", "vt_num_hidden_layers"},
    VisionSize{"vision.hidden", "hidden_size", "vt_hidden_size"},
    VisionSize{"vision.heads", "num_heads", "vt_num_attention_heads"},
    VisionSize{"vision.intermediate", "intermediate_size", "vt_intermediate_size"},
    VisionSize{"vision.patch", "patch_size", "patch_size"}};

void read_qwen(Config& config, file::Model& model) {
  file::Vision& vision = *model.mutable_vision();
  vision.set_frames(config.size_or("temporal_patch_size", "vision.frames", 2));
  vision.set_merge(config.size_or("spatial_merge_size", "vision.merge", 2));
  vision.set_positions(config.size_or("num_position_embeddings", "vision.positions", 2304));
  const auto further = static_cast<std::int64_t>(config.numbers("deepstack_visual_indexes").size());
  vision.set_projectors(1 + further);
  config.expect("in_channels", 3, " (pixels have three colours)");
  config.expect("out_hidden_size", model.hidden(), " (the text's width)");
}

// MoonViT: positions are a table of rows x columns.
void read_moonvit(Config& config, file::Model& model) {
  file::Vision& vision = *model.mutable_vision();
  vision.set_positions(config.size("init_pos_emb_height", "vision.positions") *
                       config.size("init_pos_emb_width", "vision.positions"));
  const std::vector<std::int64_t> merged = config.numbers("merge_kernel_size");
  config.refuse_if(merged.size() != 2 || merged[0] != merged[1] || merged[0] < 1,
                   "merge_kernel_size", "must be two equal whole numbers of at least 1");
  if (!merged.empty()) vision.set_merge(merged[0]);
  config.expect("text_hidden_size", model.hidden(), " (the text's width)");
}

}  // namespace

bool is_read_vision(const Json& object) {
  return is_qwen(object) || (object.contains("vt_hidden_size") &&
                             text_at(object, "mm_projector_type") == "patchmerger");
}

void read_vision(const std::string& name, const Json& object, file::Model& model,
                 ProblemList& problems) {
  Config config(name + ": vision_config", object, problems);
  const bool qwen = is_qwen(object);
  for (const VisionSize& size : kSizes) {
    const std::int64_t value = config.size(qwen ? size.qwen : size.moonvit, size.field);
    set_field(model, size.field, std::to_string(value));
  }
  qwen ? read_qwen(config, model) : read_moonvit(config, model);
}

}  // namespace stepsim
