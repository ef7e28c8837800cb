#include "proto/experiment_draft.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <filesystem>

#include "proto/catalog/catalog_reference.h"
#include "proto/experiment.pb.h"
#include "proto/hugging_face/hugging_face.h"
#include "proto/key_groups_of_files.h"
#include "proto/messages/message_fields.h"
#include "proto/messages/message_file.h"
#include "proto/messages/problem_list.h"
#include "proto/named_files.h"
#include "sim/base/field_text.h"

namespace stepsim {

struct ExperimentDraft::Message {
  file::Experiment fields;
};

ExperimentDraft::ExperimentDraft() : message_(std::make_unique<Message>()) {}
ExperimentDraft::~ExperimentDraft() = default;

std::optional<std::string> ExperimentDraft::set(std::string_view path, std::string_view value) {
  const JoinedPath joined = joined_path(path);
  if (!joined.problem.empty()) return joined.problem;
  return set_field(message_->fields, joined.path, value);
}

std::optional<std::string> ExperimentDraft::find(std::string_view path) const {
  const google::protobuf::Message* group = &message_->fields;
  const JoinedPath joined = joined_path(path);
  const std::vector<std::string_view> names = split_text(joined.path, '.');
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* const field = group->GetDescriptor()->FindFieldByName(std::string(names[i]));
    if (field == nullptr || field->is_repeated()) return std::nullopt;
    const google::protobuf::Reflection& reflection = *group->GetReflection();
    if (!reflection.HasField(*group, field)) return std::nullopt;
    const bool is_group = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    const bool is_last = i + 1 == names.size();
    if (is_group == is_last) return std::nullopt;
    if (is_last) return plain_text(*group, *field, 0);
    group = &reflection.GetMessage(*group, field);
  }
  return std::nullopt;
}

std::int64_t ExperimentDraft::integer(std::string_view path) const {
  const std::optional<std::string> text = find(path);
  return text ? number_in<std::int64_t>(*text).value_or(0) : 0;
}

std::vector<Problem> ExperimentDraft::set_hugging_face(const std::string& path) {
  ProblemList problems;
  file::Model model;
  model.set_huggingface(std::filesystem::absolute(config_of(path)).string());
  if (resolve(model, "", problems) && problems.empty()) *message_->fields.mutable_model() = model;
  return problems.all();
}

std::vector<Problem> ExperimentDraft::set_cluster_file(const std::string& path) {
  ProblemList problems;
  file::Cluster& cluster = *message_->fields.mutable_cluster();
  cluster.Clear();
  if (const auto source = read_source(path, "--cluster", problems)) {
    read_message(*source, "cluster.", cluster, problems);
    place_files(std::filesystem::absolute(path).parent_path(), cluster, problems);
  }
  return problems.all();
}

std::vector<Problem> ExperimentDraft::set_cluster_of_record(const std::string& json) {
  ProblemList problems;
  file::Experiment record;
  read_message({.name = "record", .extension = ".json", .text = json}, "", record, problems);
  *message_->fields.mutable_cluster() = record.cluster();
  return problems.all();
}

std::string ExperimentDraft::text() const {
  file::Experiment in_groups = message_->fields;
  split_groups(in_groups);
  std::string text;
  google::protobuf::TextFormat::PrintToString(in_groups, &text);
  return text;
}

}  // namespace stepsim
