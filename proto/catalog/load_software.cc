#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "experiment/experiment.h"
#include "proto/catalog/catalog.h"
#include "proto/software.pb.h"

namespace stepsim {
namespace {

// The fields that are set, in order of their numbers.
std::vector<std::pair<std::string, std::string>> keys_of(const file::Plan& plan) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  plan.GetReflection()->ListFields(plan, &fields);
  std::vector<std::pair<std::string, std::string>> keys;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(plan, field, -1, &value);
    keys.emplace_back(std::string(field->name()), std::move(value));
  }
  return keys;
}

std::vector<std::pair<std::string, std::string>> chips_of(const file::Software& entry) {
  std::vector<std::pair<std::string, std::string>> chips;
  for (const file::SoftwareChip& chip : entry.chip()) {
    std::string fields;
    google::protobuf::TextFormat::PrintToString(chip.fields(), &fields);
    chips.emplace_back(chip.begins_with(), std::move(fields));
  }
  return chips;
}

}  // namespace

std::vector<Software> load_software() {
  ProblemList problems;
  std::vector<Software> table;
  for (const SourceText& source : catalog_tables("software")) {
    file::SoftwareTable message;
    read_message(source, "", message, problems);
    for (const file::Software& entry : message.software()) {
      table.push_back({.name = entry.name(),
                       .sources = {entry.source().begin(), entry.source().end()},
                       .plan = keys_of(entry.plan()),
                       .dropout = entry.dropout(),
                       .fixed_memory = entry.fixed_memory(),
                       .chips = chips_of(entry)});
    }
  }
  throw_if_any(problems.all());
  return table;
}

}  // namespace stepsim
