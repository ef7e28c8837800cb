#include "proto/hugging_face/hugging_face.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/hugging_face/families/hugging_face_families.h"
#include "proto/hugging_face/text_part.h"
#include "proto/hugging_face/vision_part.h"
#include "proto/hugging_face/weight_types.h"
#include "proto/messages/json_value.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

std::size_t shared_start(std::string_view one, std::string_view other) {
  const auto lower = [](unsigned char letter) { return std::tolower(letter); };
  const auto [end, unused] = std::ranges::mismatch(one, other, {}, lower, lower);
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
  const std::string_view reason = reason_not_read(type);
  return (nearest.empty() ? "" : "; nearest: " + comma_separated(nearest)) +
         (reason.empty() ? "" : "; " + type + ": " + std::string(reason)) +
         ". One that only renames a family is read with --as FAMILY; another can be described by "
         "hand (docs/adding-a-model.md): model { layers: .. hidden: .. intermediate: .. heads: .. "
         "vocabulary: .. mixer_pattern: a letter a layer, G for global attention, L for a window, "
         "S for a state and others; mlp_pattern: D for dense, E for experts }, with window, state "
         "{ .. } or experts { .. } where a letter needs it";
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

// A model of several parts whose text doesn't name its own family has the name of the whole.
const HuggingFaceFamily* family_named(const Json& type) {
  if (!type.is_string()) return nullptr;
  const std::string name = type.get<std::string>();
  for (const std::string& spelling : {name, name + "_text"}) {
    for (const HuggingFaceFamily& family : hugging_face_families()) {
      if (spelling == family.model_type) return &family;
    }
  }
  return nullptr;
}

void add_note(const std::string& note, file::Model& model) {
  if (note.empty()) return;
  model.set_note(model.note() + (model.note().empty() ? "" : "; ") + note);
}

// Modules of multi-token prediction that a family doesn't read are left out, and said so.
void note_prediction(HuggingFaceConfig& config, file::Model& model) {
  for (const char* key : {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"}) {
    if (!config.asked().contains(key) && config.count_or(key, "prediction_modules", 0) > 0) {
      add_note("its modules of multi-token prediction are not counted", model);
    }
  }
}

}  // namespace

std::filesystem::path config_of(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool is_folder =
      path.extension() != ".json" && std::filesystem::is_directory(path, ignored);
  return is_folder ? path / "config.json" : path;
}

bool is_hugging_face(const SourceText& source) {
  if (source.extension != ".json") return false;
  const std::optional<Json> object = parse_config(source.text).value;
  return object && object->is_object() && has_text_part(*object);
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
  if (const HuggingFaceFamily* const family = family_named(read_as)) {
    HuggingFaceConfig config(name, part.object, problems);
    family->read(config, model);
    read_weight_type(config, model);
    if (part.vision) read_vision(source.name, *part.vision, model, problems);
    note_prediction(config, model);
    config.refuse_unread(family->model_type, keys_of_families());
    add_note(part.note, model);
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
