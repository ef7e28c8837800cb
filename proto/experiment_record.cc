#include "proto/experiment_record.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "proto/message_fields.h"
#include "proto/record_fields.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/plan_fields.h"

namespace stepsim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using json = nlohmann::ordered_json;

const std::vector<std::pair<std::string, Fidelity>> kFidelities = {
    {"latency-bandwidth", Fidelity::kLatencyBandwidth},
    {"flow", Fidelity::kFlow},
    {"packet", Fidelity::kPacket}};
const std::vector<std::pair<std::string, Granularity>> kGranularities = {
    {"pipelined", Granularity::kPipelined}, {"stepped", Granularity::kStepped}};
const std::vector<std::pair<std::string, Switching>> kSwitchings = {
    {"store-and-forward", Switching::kStoreAndForward}, {"cut-through", Switching::kCutThrough}};
const std::vector<std::pair<std::string, AttentionFlops>> kConventions = {
    {"causal", AttentionFlops::kCausal}, {"full", AttentionFlops::kFull}};

template <typename Value>
std::string name_in(const std::vector<std::pair<std::string, Value>>& names, Value value) {
  return std::ranges::find(names, value, [](const auto& entry) { return entry.second; })->first;
}

// Returns nullopt if no entry has that name; then the field has a problem.
template <typename Value>
std::optional<Value> value_named(const std::vector<std::pair<std::string, Value>>& names,
                                 const std::string& name, const std::string& field,
                                 ProblemList& problems) {
  std::string accepted;
  for (const auto& [choice, meaning] : names) {
    if (choice == name) return meaning;
    accepted += (accepted.empty() ? "" : " or ") + choice;
  }
  problems.add(field, "must be " + accepted + ", is \"" + name + "\"");
  return std::nullopt;
}

json object_of(const Message& message);

// Returns the element of a list at that index, or the value of a field that is not a list.
json value_of(const Message& message, const FieldDescriptor& field, int index) {
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
      return json::parse(plain_text(message, field, index));
  }
}

// Returns every field that is set, as a JSON file has it.
json object_of(const Message& message) {
  json object = json::object();
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    json& value = object[std::string(field->name())];
    if (!field->is_repeated()) {
      value = value_of(message, *field, 0);
      continue;
    }
    value = json::array();
    const int count = message.GetReflection()->FieldSize(message, field);
    for (int i = 0; i < count; ++i) value.push_back(value_of(message, *field, i));
  }
  return object;
}

// Returns every key in force, then the given keys that were split into others. A user's own
// schedule is written out itself, not as its file name.
json plan_of(const file::Plan& message, const ParallelPlan& plan) {
  json object;
  for (const FieldValue& value : values_in_force(plan_fields(), &plan)) {
    const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(value.path);
    const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    object[value.path] = is_text ? json(value.text) : json::parse(value.text);
  }
  if (plan.own_schedule) object["schedule"] = write_schedule(*plan.own_schedule);
  const json given = object_of(message);
  for (const auto& [key, value] : given.items()) {
    if (!object.contains(key)) object[key] = value;
  }
  return object;
}

json simulation_of(const SimulationChoices& choices) {
  const ExperimentOptions& options = choices.options;
  json object;
  for (const Fidelity fidelity : options.fidelities) {
    object["fidelity"].push_back(name_in(kFidelities, fidelity));
  }
  object["granularity"] = name_in(kGranularities, options.granularity);
  if (options.steps) object["steps"] = *options.steps;
  object["attention_flops"] = name_in(kConventions, options.attention_flops);
  if (choices.explains) object["explain"] = true;
  if (options.fidelities.back() != Fidelity::kPacket) return object;
  const PacketOptions& packets = options.packets;
  object["packet_bytes"] = packets.packet_bytes.value();
  object["switching"] = name_in(kSwitchings, packets.switching);
  if (packets.buffer_bytes) object["buffer_bytes"] = packets.buffer_bytes->value();
  if (packets.spraying) object["spraying"] = packets.spraying->routes;
  return object;
}

// Writes one member per line on the first two levels, and deeper levels on one line.
std::string lines_of(const json& value, std::size_t depth) {
  constexpr std::size_t kDeepest = 3;
  if (!value.is_object() || value.empty() || depth == kDeepest) return value.dump();
  const std::string indent(2 * (depth + 1), ' ');
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += (text.empty() ? "\n" : ",\n") + indent + json(key).dump() + ": " +
            lines_of(member, depth + 1);
  }
  return '{' + text + '\n' + std::string(2 * depth, ' ') + '}';
}

}  // namespace

SimulationChoices to_simulation(const file::Experiment& message, ProblemList& problems) {
  SimulationChoices choices;
  ExperimentOptions& options = choices.options;
  options.seed = message.seed();
  const file::Simulation& simulation = message.simulation();
  const std::string prefix = "simulation.";
  const auto within = [&](const char* field, std::int64_t least, std::int64_t most,
                          std::int64_t value) {
    if (value >= least && value <= most) return;
    problems.add(prefix + field, "must be a whole number from " + std::to_string(least) + " to " +
                                     std::to_string(most) + ", is " + std::to_string(value));
  };
  const auto choose = [&](const char* field, bool given, const std::string& name, const auto& names,
                          auto& result) {
    if (given) result = value_named(names, name, prefix + field, problems).value_or(result);
  };
  if (simulation.fidelity_size() > 0) options.fidelities.clear();
  for (const std::string& name : simulation.fidelity()) {
    const auto fidelity = value_named(kFidelities, name, prefix + "fidelity", problems);
    if (fidelity) options.fidelities.push_back(*fidelity);
  }
  if (options.fidelities.empty()) options.fidelities = {Fidelity::kFlow};
  choose("granularity", simulation.has_granularity(), simulation.granularity(), kGranularities,
         options.granularity);
  if (simulation.has_steps()) {
    within("steps", 1, 1000, simulation.steps());
    options.steps = simulation.steps();
  }
  choose("attention_flops", simulation.has_attention_flops(), simulation.attention_flops(),
         kConventions, options.attention_flops);
  choices.explains = simulation.explain();
  PacketOptions& packets = options.packets;
  if (simulation.has_packet_bytes()) {
    within("packet_bytes", 1, std::numeric_limits<std::int32_t>::max(), simulation.packet_bytes());
    packets.packet_bytes = Bytes(simulation.packet_bytes());
    packets.header_bytes = std::min(packets.header_bytes, packets.packet_bytes);
  }
  choose("switching", simulation.has_switching(), simulation.switching(), kSwitchings,
         packets.switching);
  if (simulation.has_buffer_bytes()) {
    within("buffer_bytes", packets.packet_bytes.value(),
           std::numeric_limits<std::int64_t>::max() / 2, simulation.buffer_bytes());
    packets.buffer_bytes = Bytes(simulation.buffer_bytes());
  }
  if (simulation.has_spraying()) {
    within("spraying", 1, 4096, simulation.spraying());
    packets.spraying = PacketSpraying{.routes = simulation.spraying()};
  }
  return choices;
}

void take_out_of_result(SourceText& source) {
  if (source.extension != ".json") return;
  const json object = json::parse(source.text, nullptr, false);
  if (!object.is_object() || !object.contains("experiment")) return;
  source.text = object["experiment"].dump();
  source.name += ": experiment";
}

ExperimentRecord record_of(const file::Experiment& message, const Experiment& experiment) {
  json fields;
  fields["name"] = experiment.name;
  fields["model"] = object_of(message.model());
  fields["cluster"] = object_of(message.cluster());
  fields["plan"] = plan_of(message.plan(), experiment.plan);
  if (message.has_variation()) fields["variation"] = object_of(message.variation());
  for (const file::Published& published : message.published()) {
    fields["published"].push_back(object_of(published));
  }
  if (message.has_not_published()) fields["not_published"] = message.not_published();
  return {.fields = fields.dump(),
          .overrides = {message.overrides().begin(), message.overrides().end()}};
}

std::string record_json(const ExperimentRecord& record, const SimulationChoices& choices,
                        std::string_view stepsim_version) {
  json object = json::parse(record.fields);
  object["simulation"] = simulation_of(choices);
  object["seed"] = choices.options.seed;
  object["overrides"] = record.overrides;
  object["stepsim_version"] = stepsim_version;
  return lines_of(object, 1);
}

}  // namespace stepsim
