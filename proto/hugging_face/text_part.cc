#include "proto/hugging_face/text_part.h"

#include <utility>

#include "proto/hugging_face/class_defaults.h"
#include "proto/hugging_face/vision_part.h"

namespace stepsim {
namespace {

// Returns the key of the object that holds the text's model, or nullptr.
const char* wrapper_in(const Json& object) {
  for (const char* wrapper : {"thinker_config", "text_config", "language_config", "llm_config"}) {
    const auto found = object.find(wrapper);
    if (found != object.end() && found->is_object()) return wrapper;
  }
  return nullptr;
}

void note_other_parts(const Json& object, std::string& left_out, std::optional<Json>& vision) {
  for (const auto& [key, what] :
       {std::pair{"vision_config", "vision"}, std::pair{"audio_config", "audio"},
        std::pair{"talker_config", "speech"}, std::pair{"embd_layer", "vision and audio"}}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_object()) continue;
    if (key == std::string_view("vision_config") && is_read_vision(*found)) {
      vision = *found;
      continue;
    }
    left_out += (left_out.empty() ? "its " : " and ") + std::string(what);
  }
}

// The files of Mamba's authors name no family.
bool is_of_mamba_ssm(const Json& object) {
  return object.contains("ssm_cfg") && !object.contains("model_type");
}

}  // namespace

TextPart text_part(Json object) {
  TextPart part{std::move(object)};
  std::string left_out;
  note_other_parts(part.object, left_out, part.vision);
  while (const char* const wrapper = wrapper_in(part.object)) {
    part.inside += ": " + std::string(wrapper);
    const Json outer = std::move(part.object);
    part.object = outer[wrapper];
    note_other_parts(part.object, left_out, part.vision);
    for (const char* key : {"model_type", "tie_word_embeddings", "quantization_config"}) {
      if (!part.object.contains(key) && outer.contains(key)) part.object[key] = outer[key];
    }
  }
  if (is_of_mamba_ssm(part.object)) part.object["model_type"] = "mamba_ssm";
  if (!left_out.empty()) part.note = left_out + " part is not counted";
  const std::string added = part.inside.empty() ? "" : add_class_defaults(part.object);
  if (!added.empty()) {
    part.note += (part.note.empty() ? "" : "; ") + added + " are those of its class";
  }
  return part;
}

bool has_text_part(const Json& object) {
  return object.contains("model_type") || wrapper_in(object) != nullptr || is_of_mamba_ssm(object);
}

}  // namespace stepsim
