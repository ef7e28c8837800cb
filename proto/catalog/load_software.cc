#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/catalog/measured_tables.h"
#include "proto/software.pb.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

std::vector<file::Software> software_messages() {
  ProblemList problems;
  std::vector<file::Software> all;
  for (const SourceText& source : catalog_tables("software")) {
    file::SoftwareTable table;
    read_message(source, "", table, problems);
    all.insert(all.end(), table.software().begin(), table.software().end());
  }
  throw_if_any(problems.all());
  return all;
}

// Returns the value of a plain field as --set takes it: without quotes.
std::string plain_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field) {
  if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
    return message.GetReflection()->GetString(message, &field);
  }
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

// Returns the fields that are set, in order of their numbers.
std::vector<std::pair<std::string, std::string>> keys_of(const file::Plan& plan) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  plan.GetReflection()->ListFields(plan, &fields);
  std::vector<std::pair<std::string, std::string>> keys;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    keys.emplace_back(std::string(field->name()), plain_text(plan, *field));
  }
  return keys;
}

// Puts the changes that the software makes over the chip's fields.
void change_chip(const std::string& software, const std::string& name, file::Chip& chip) {
  for (const file::Software& entry : software_messages()) {
    if (entry.name() != software) continue;
    if (entry.has_fixed_memory()) chip.set_fixed_memory(entry.fixed_memory());
    const auto own = std::ranges::find_if(entry.chip(), [&name](const file::SoftwareChip& change) {
      return name.starts_with(change.begins_with());
    });
    if (own != entry.chip().end()) chip.MergeFrom(own->fields());
    return;
  }
}

}  // namespace

std::vector<Software> load_software() {
  std::vector<Software> table;
  for (const file::Software& entry : software_messages()) {
    table.push_back({.name = entry.name(),
                     .sources = {entry.source().begin(), entry.source().end()},
                     .plan = keys_of(entry.plan()),
                     .dropout = entry.dropout()});
  }
  return table;
}

ClusterSpec load_measured_cluster(const MeasuredCluster& measured) {
  ProblemList problems;
  file::Cluster message;
  message.set_catalog(measured.cluster);
  message.mutable_chip()->set_catalog(measured.chip);
  change_chip(measured.software, measured.chip, *message.mutable_chip());
  if (!measured.library.empty()) message.mutable_library()->set_catalog(measured.library);
  ClusterSpec spec;
  if (resolve(message, problems)) spec = to_cluster(message, problems);
  throw_if_any(problems.all());
  return spec;
}

}  // namespace stepsim
