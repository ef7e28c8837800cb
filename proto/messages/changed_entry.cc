#include "proto/messages/changed_entry.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "proto/chip.pb.h"
#include "proto/library.pb.h"
#include "proto/messages/message_fields.h"
#include "sim/chips/chip_fields.h"
#include "sim/collectives/library_fields.h"
#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

const AnyField& field_at(const AnyFieldTable& table, std::string_view path) {
  const std::size_t dot = path.find('.');
  const AnyField& field = *table.find(path.substr(0, dot));
  return dot == std::string_view::npos ? field : field_at(*field.fields(), path.substr(dot + 1));
}

// Returns the value as a person would write it.
std::string text_of(const AnyFieldTable& table, const FieldValue& value) {
  const std::string accepts = field_at(table, value.path).accepts();
  if (accepts == Text<Duration>::accepts()) {
    const std::int64_t picoseconds = Text<Duration>::read(value.text)->count();
    return fmt::format("{}us", static_cast<double>(picoseconds) / 1e6);
  }
  if (accepts == Text<Bandwidth>::accepts()) {
    return fmt::format("{}GB/s", Text<Bandwidth>::read(value.text)->value() / 1e9);
  }
  if (accepts == Text<Bytes>::accepts()) {
    const std::int64_t bytes = Text<Bytes>::read(value.text)->value();
    return bytes > 0 && bytes % 1024 == 0 ? fmt::format("{}KiB", bytes / 1024)
                                          : fmt::format("{}B", bytes);
  }
  return value.text;
}

void set(google::protobuf::Message& message, const std::string& path, const std::string& text) {
  if (const auto problem = set_field(message, path, text)) {
    throw std::logic_error(path + " " + *problem);
  }
}

// Sets a field of the message for each value, below `path`.
void set_values(const AnyFieldTable& table, const std::vector<FieldValue>& values,
                const std::string& path, google::protobuf::Message& message) {
  for (const FieldValue& value : values) {
    set(message, path + "." + value.path, text_of(table, value));
  }
}

// Returns the values that are not those of a field that is left out, and the keys.
std::vector<FieldValue> needed_values(const AnyFieldTable& table, const ProtocolTiming& timing) {
  const ProtocolTiming untouched;
  const std::vector<FieldValue> defaults = values_in_force(table, &untouched);
  std::vector<FieldValue> values = values_in_force(table, &timing);
  std::erase_if(values, [&](const FieldValue& value) {
    const bool is_key = value.path == "path" || value.path == "protocol";
    return !is_key && std::ranges::count(defaults, value) > 0;
  });
  return values;
}

std::string text_of(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace

std::string changed_chip(const std::string& base, const ChipSpec& chip,
                         const ChipChanges& changes) {
  file::Chip message;
  message.set_catalog(base);
  if (changes.matmuls) {
    const AnyFieldTable& efficiency = *chip_fields().find("efficiency")->fields();
    const AnyFieldTable& matmul = *efficiency.find("matmul")->fields();
    set_values(matmul, values_in_force(matmul, &chip.efficiency.matmul), "efficiency.matmul",
               message);
    for (std::size_t i = 0; i < chip.efficiency.matmul_of.size(); ++i) {
      set_values(matmul, values_in_force(matmul, &chip.efficiency.matmul_of[i]),
                 fmt::format("efficiency.matmul_of[{}]", i), message);
    }
  }
  if (changes.power)
    message.mutable_power()->set_joules_per_teraflop(chip.power->joules_per_teraflop);
  return text_of(message);
}

std::string changed_library(const std::string& base, const CommunicationLibrary& library,
                            const std::vector<std::size_t>& timings) {
  file::Library message;
  message.set_catalog(base);
  message.set_name(base + "-calibrated");
  const AnyFieldTable& table = *library_fields().find("timing")->fields();
  for (std::size_t i = 0; i < timings.size(); ++i) {
    set_values(table, needed_values(table, library.timings[timings[i]]),
               fmt::format("timing[{}]", i), message);
  }
  return text_of(message);
}

}  // namespace stepsim
