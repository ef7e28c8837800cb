#include "proto/hugging_face/import_model.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <string>

#include "proto/catalog/catalog_reference.h"
#include "proto/hugging_face/families/hugging_face_families.h"
#include "proto/hugging_face/hugging_face.h"
#include "proto/to_spec.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Writes 8030261248 as 8,030,261,248.
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

}  // namespace

std::string import_hugging_face(const std::string& path, const std::string& as) {
  ProblemList problems;
  file::Model message;
  message.set_huggingface(std::filesystem::absolute(path).string());
  if (!as.empty()) message.set_as(as);
  ModelSpec model;
  if (resolve(message, "", problems)) model = to_model(message, problems);
  if (!problems.empty()) throw ConfigError(problems.all());
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  const std::int64_t all = parameter_count(model);
  const std::int64_t active = active_parameter_count(model);
  std::string size = grouped(all) + " parameters";
  if (active != all) size += ", " + grouped(active) + " active for a token";
  const std::int64_t prediction = prediction_parameter_count(model);
  if (prediction > 0) size += ", " + grouped(prediction) + " for multi-token prediction besides";
  const std::int64_t vision = vision_parameter_count(model);
  if (vision > 0) size += ", " + grouped(vision) + " of its vision part besides";
  return fmt::format("# From {}: {}.\n{}", std::filesystem::path(path).filename().string(), size,
                     text);
}

std::string families_text() {
  std::string text;
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    text += std::string(family.model_type) + "\n";
  }
  return text;
}

}  // namespace stepsim
