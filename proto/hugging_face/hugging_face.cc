#include "proto/hugging_face/hugging_face.h"

#include <string>
#include <utility>

#include "proto/hugging_face/hugging_face_families.h"
#include "proto/json_value.h"

namespace stepsim {
namespace {

std::string names_of_families() {
  std::string names;
  const auto families = hugging_face_families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    names += i == 0 ? "" : i + 1 == families.size() ? " or " : ", ";
    names += "\"" + std::string(families[i].model_type) + "\"";
  }
  return names;
}

}  // namespace

bool is_hugging_face(const SourceText& source) {
  if (source.extension != ".json") return false;
  const std::optional<Json> object = parse_json(source.text).value;
  return object && object->is_object() && object->contains("model_type");
}

void read_hugging_face(const SourceText& source, file::Model& model, ProblemList& problems) {
  JsonOrProblem read = parse_json(source.text);
  if (!read.value) {
    problems.add(source.name, read.problem);
    return;
  }
  Json object = std::move(*read.value);
  if (!object.is_object()) {
    problems.add(source.name, "must hold one object in braces");
    return;
  }
  std::string name = source.name;
  const auto text_config = object.find("text_config");
  if (text_config != object.end() && text_config->is_object() &&
      text_config->contains("model_type")) {
    name += ": text_config";
    object = Json(*text_config);
  }
  const Json type = object.value("model_type", Json());
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    if (type != Json(family.model_type)) continue;
    HuggingFaceConfig config(name, object, problems);
    family.read(config, model);
    config.refuse_unread(family.model_type);
    return;
  }
  problems.add(name + ": model_type", "must be " + names_of_families() + ", is " +
                                          (type.is_null() ? "missing" : shown(type)));
}

}  // namespace stepsim
