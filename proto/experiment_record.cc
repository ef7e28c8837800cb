#include "proto/experiment_record.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/simulation_fields.h"
#include "proto/messages/json_value.h"
#include "proto/messages/message_fields.h"
#include "proto/messages/read_fields.h"
#include "proto/record_fields.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/field_text.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

Json object_of(const ProtoMessage& message);

// Returns a number or truth value of a field, which was written as in JSON.
Json plain_value(const std::string& text) {
  // Most are whole numbers, and a parser is made for whole texts.
  if (const auto number = number_in<std::int64_t>(text)) return *number;
  JsonOrProblem read = parse_json(text);
  return read.value ? std::move(*read.value) : Json(text);
}

// Returns the element of a list at that index, or the value of a field that is not a list.
Json value_of(const ProtoMessage& message, const FieldDescriptor& field, int index) {
  const Reflection& from = *message.GetReflection();
  const bool is_list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return object_of(is_list ? from.GetRepeatedMessage(message, &field, index)
                               : from.GetMessage(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:  // 2.0, not 2
      return is_list ? from.GetRepeatedDouble(message, &field, index)
                     : from.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return plain_text(message, field, index);
    default:
      return plain_value(plain_text(message, field, index));
  }
}

// Returns every field that is set, as a JSON file has it.
Json object_of(const ProtoMessage& message) {
  Json object = Json::object();
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    Json& value = object[std::string(field->name())];
    if (!field->is_repeated()) {
      value = value_of(message, *field, 0);
      continue;
    }
    value = Json::array();
    const int count = message.GetReflection()->FieldSize(message, field);
    for (int i = 0; i < count; ++i) value.push_back(value_of(message, *field, i));
  }
  return object;
}

// Returns every key of a group in force, then the given keys that were split into others. A user's
// own schedule is written out itself, not as its file name.
Json keys_of(KeyGroup group, const file::Plan& message, const ParallelPlan& plan) {
  Json object = Json::object();
  if (group == KeyGroup::kSoftware && !plan.software.empty()) object["catalog"] = plan.software;
  for (const FieldValue& value : fields_of(group).in_force(plan)) {
    const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(value.path);
    const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    object[value.path] = is_text ? Json(value.text) : plain_value(value.text);
  }
  if (group == KeyGroup::kPlan && plan.pipeline.own_schedule) {
    object["schedule"] = write_schedule(*plan.pipeline.own_schedule);
  }
  const Json given = object_of(message);
  for (const auto& [key, value] : given.items()) {
    if (group_of(key) == group && !object.contains(key)) object[key] = value;
  }
  return object;
}

// The last network model is the finest.
bool has_packets_in(const ExperimentOptions& options) {
  return options.fidelities.back() == Fidelity::kPacket;
}

// Returns every field of the transport in force.
Json transport_of(const TransportSpec& spec) {
  Json object = Json::object();
  for (const auto& row : transport_fields().fields()) {
    const auto text = row->write(&spec);
    if (!text) continue;
    const FieldDescriptor* const field =
        file::Transport::descriptor()->FindFieldByName(std::string(row->name()));
    object[std::string(row->name())] =
        field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ? Json(*text) : plain_value(*text);
  }
  return object;
}

// Returns every field in force; those of packets only if there are packets.
Json simulation_of(const ExperimentOptions& options) {
  const bool has_packets = has_packets_in(options);
  Json object = Json::object();
  for (const auto& row : simulation_fields().fields()) {
    const auto text = row->write(&options);
    if (!text || (acts_on_packets(*row) && !has_packets)) continue;
    const FieldDescriptor* const field =
        file::Simulation::descriptor()->FindFieldByName(std::string(row->name()));
    Json& value = object[std::string(row->name())];
    if (field->is_repeated()) {
      value = Json::array();
      for (const std::string_view part : split_text(*text, ',')) value.push_back(part);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      value = static_cast<std::int64_t>(*row->number(&options));  // without its unit
    } else {
      value =
          field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ? Json(*text) : plain_value(*text);
    }
  }
  return object;
}

std::string lines_of(const Json& value, std::size_t depth);

// Returns the members of an object, each on lines of its own, with commas between them.
std::string members_of(const Json& object, std::size_t depth) {
  const std::string indent(2 * (depth + 1), ' ');
  std::string text;
  for (const auto& [key, member] : object.items()) {
    text += (text.empty() ? "\n" : ",\n") + indent + json_text(key) + ": " +
            lines_of(member, depth + 1);
  }
  return text;
}

// Writes one member per line on the first two levels, and deeper levels on one line.
std::string lines_of(const Json& value, std::size_t depth) {
  constexpr std::size_t kDeepest = 3;
  if (!value.is_object() || value.empty() || depth == kDeepest) return json_text(value);
  return '{' + members_of(value, depth) + '\n' + std::string(2 * depth, ' ') + '}';
}

constexpr std::size_t kRecordDepth = 1;  // the record is a member of a result

}  // namespace

ExperimentOptions to_simulation(const file::Experiment& message, ProblemList& problems) {
  ExperimentOptions options;
  options.seed = message.seed();
  read_fields(message.simulation(), simulation_fields(), options, "simulation.", problems);
  if (options.fidelities.empty()) options.fidelities = ExperimentOptions{}.fidelities;
  if (std::ranges::count(options.fidelities, Fidelity::kPacket) > 0) {
    options.granularity = Granularity::kStepped;
  }
  if (message.has_transport()) {
    const file::Transport& given = message.transport();
    const auto kind = Text<TransportKind>::read(given.name());
    TransportSpec spec = default_transport(kind.value_or(TransportKind::kGoBackN));
    if (!given.has_payload()) spec.payload = options.packets.packet_bytes;
    read_fields(given, transport_fields(), spec, "transport.", problems);
    options.transport = std::move(spec);
  }
  for (Problem& problem : check_simulation(options)) {
    problems.add("simulation." + problem.field, std::move(problem.message));
  }
  return options;
}

void take_out_of_result(SourceText& source) {
  if (source.extension != ".json") return;
  const std::optional<Json> object = parse_json(source.text).value;
  if (!object || !object->is_object() || !object->contains("experiment")) return;
  source.text = json_text((*object)["experiment"]);
  source.name += ": experiment";
}

ExperimentRecord record_of(const file::Experiment& message, const Experiment& experiment) {
  Json fields = Json::object();
  fields["name"] = experiment.name;
  fields["model"] = object_of(message.model());
  file::Cluster cluster = message.cluster();
  // Training runs nothing of it.
  if (!experiment.plan.is_inference() && cluster.has_chip()) {
    cluster.mutable_chip()->clear_serving();
  }
  fields["cluster"] = object_of(cluster);
  for (const KeyGroup group : kKeyGroups) {
    if (group == KeyGroup::kPass && !experiment.plan.is_inference()) continue;
    fields[std::string(name_of(group))] = keys_of(group, message.plan(), experiment.plan);
  }
  if (message.has_variation()) fields["variation"] = object_of(message.variation());
  if (message.published_size() > 0) fields["published"] = Json::array();
  for (const file::Published& published : message.published()) {
    fields["published"].push_back(object_of(published));
  }
  if (message.has_not_published()) fields["not_published"] = message.not_published();
  return {.fields = json_text(fields),
          .lines = members_of(fields, kRecordDepth),
          .overrides = {message.overrides().begin(), message.overrides().end()}};
}

std::string record_json(const ExperimentRecord& record, const ExperimentOptions& options,
                        std::string_view stepsim_version) {
  Json object = Json::object();
  object["simulation"] = simulation_of(options);
  if (options.transport && has_packets_in(options)) {
    object["transport"] = transport_of(*options.transport);
  }
  object["seed"] = options.seed;
  object["overrides"] = record.overrides;
  object["stepsim_version"] = stepsim_version;
  return '{' + record.lines + ',' + members_of(object, kRecordDepth) + "\n  }";
}

}  // namespace stepsim
