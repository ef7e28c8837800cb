#include "proto/hugging_face/hugging_face.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/hugging_face/hugging_face_families.h"
#include "proto/hugging_face/weight_types.h"
#include "proto/json_value.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

std::size_t shared_start(std::string_view one, std::string_view other) {
  const auto [end, unused] = std::ranges::mismatch(one, other);
  return static_cast<std::size_t>(end - one.begin());
}

// Returns the families whose names begin like this one's, the most alike first.
std::vector<std::string> nearest_families(const std::string& type) {
  constexpr std::size_t kLeast = 3;
  constexpr std::size_t kMost = 6;
  std::vector<std::string> names;
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    if (shared_start(type, family.model_type) >= kLeast) names.emplace_back(family.model_type);
  }
  std::ranges::stable_sort(names, std::greater(),
                           [&type](const std::string& name) { return shared_start(type, name); });
  if (names.size() > kMost) names.resize(kMost);
  return names;
}

// Returns what a person can do with a family that isn't read.
std::string advice_on(const std::string& type) {
  const std::vector<std::string> nearest = nearest_families(type);
  return (nearest.empty() ? "" : "; nearest: " + comma_separated(nearest)) +
         ". One that only renames a family is read with --as FAMILY; another can be described by "
         "hand: model { layers: .. hidden: .. heads: .. mixer_pattern: .. mlp_pattern: .. } "
         "(docs/experiment-files.md)";
}

// Python writes infinities and NaN where JSON has no word for them; here they say nothing.
std::string without_constants_of_python(std::string text) {
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"' && (at == 0 || text[at - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (text.compare(at, word.size(), word) == 0) text.replace(at, word.size(), "null");
    }
  }
  return text;
}

JsonOrProblem parse_config(const std::string& text) {
  JsonOrProblem read = parse_json(text);
  return read.value ? read : parse_json(without_constants_of_python(text));
}

// The model of the text inside a model of several parts, and what it leaves out.
struct TextPart {
  Json object;
  std::string inside{};  // ": text_config"
  std::string left_out{};
};

TextPart text_part(Json object) {
  TextPart part{std::move(object)};
  for (const char* wrapper : {"text_config", "language_config", "llm_config"}) {
    const auto text = part.object.find(wrapper);
    if (text == part.object.end() || !text->is_object()) continue;
    part.inside = ": " + std::string(wrapper);
    break;
  }
  object = part.object;
  if (!part.inside.empty()) part.object = Json(object[part.inside.substr(2)]);
  for (const auto& [key, what] :
       {std::pair{"vision_config", "vision"}, std::pair{"audio_config", "audio"}}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_object()) continue;
    part.left_out += (part.left_out.empty() ? "its " : " and ") + std::string(what);
  }
  // These keys may stand outside.
  for (const char* key : {"model_type", "tie_word_embeddings", "quantization_config"}) {
    if (!part.object.contains(key) && object.contains(key)) part.object[key] = object[key];
  }
  return part;
}

void add_note(const std::string& note, file::Model& model) {
  if (note.empty()) return;
  model.set_note(model.note() + (model.note().empty() ? "" : "; ") + note);
}

}  // namespace

bool is_hugging_face(const SourceText& source) {
  if (source.extension != ".json") return false;
  const std::optional<Json> object = parse_config(source.text).value;
  return object && object->is_object() &&
         (object->contains("model_type") || object->contains("text_config"));
}

void read_hugging_face(const SourceText& source, const std::string& as, file::Model& model,
                       ProblemList& problems) {
  JsonOrProblem read = parse_config(source.text);
  if (!read.value) {
    problems.add(source.name, read.problem);
    return;
  }
  Json object = std::move(*read.value);
  if (!object.is_object()) {
    problems.add(source.name, "must hold one object in braces");
    return;
  }
  const TextPart part = text_part(std::move(object));
  const std::string name = source.name + part.inside;
  const Json type = part.object.value("model_type", Json());
  const Json read_as = as.empty() ? type : Json(as);
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    if (read_as != Json(family.model_type)) continue;
    HuggingFaceConfig config(name, part.object, problems);
    family.read(config, model);
    read_weight_type(config, model);
    config.refuse_unread(family.model_type);
    if (!part.left_out.empty()) add_note(part.left_out + " part is not counted", model);
    if (read_as != type) {
      add_note("read as " + as + (type.is_string() ? ", is " + type.get<std::string>() : ""),
               model);
    }
    return;
  }
  const bool is_asked = !as.empty();
  const std::string wrong = is_asked ? "\"" + as + "\"" : type.is_null() ? "missing" : shown(type);
  problems.add(is_asked ? "model.as" : name + ": model_type",
               "must be a family that is read (stepsim import families), is " + wrong +
                   advice_on(is_asked           ? as
                             : type.is_string() ? type.get<std::string>()
                                                : ""));
}

}  // namespace stepsim
