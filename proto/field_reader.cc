#include "proto/field_reader.h"

#include <google/protobuf/reflection.h>

#include <cassert>
#include <limits>
#include <string_view>

#include "sim/base/field.h"
#include "sim/base/quantity_field.h"

namespace stepsim {
namespace {

// How a quantity is read, and what stands for one that is missing.
template <typename Quantity>
struct Reading;
template <>
struct Reading<Bandwidth> {
  static constexpr auto kParse = parse_bandwidth;
  static constexpr auto kAccepted = accepted_bandwidth;
  static constexpr Bandwidth kStandIn{1};
};
template <>
struct Reading<Throughput> {
  static constexpr auto kParse = parse_throughput;
  static constexpr auto kAccepted = accepted_throughput;
  static constexpr Throughput kStandIn{1};
};
template <>
struct Reading<Duration> {
  static constexpr auto kParse = parse_duration;
  static constexpr auto kAccepted = accepted_duration;
  static constexpr Duration kStandIn{0};
};
template <>
struct Reading<Bytes> {
  static constexpr auto kParse = parse_bytes;
  static constexpr auto kAccepted = accepted_bytes;
  static constexpr Bytes kStandIn{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace

FieldReader::FieldReader(const google::protobuf::Message& message, std::string prefix,
                         ProblemList& problems)
    : message_(message), prefix_(std::move(prefix)), problems_(problems) {}

const google::protobuf::FieldDescriptor& FieldReader::descriptor(const char* field) const {
  const auto* descriptor = message_.GetDescriptor()->FindFieldByName(field);
  assert(descriptor != nullptr);
  return *descriptor;
}

bool FieldReader::has(const char* field) const {
  return message_.GetReflection()->HasField(message_, &descriptor(field));
}

void FieldReader::add(const char* field, std::string message) const {
  problems_.add(prefix_ + field, std::move(message));
}

void FieldReader::read(const char* field, int& value) const {
  if (has(field)) value = message_.GetReflection()->GetInt32(message_, &descriptor(field));
}
void FieldReader::read(const char* field, std::int64_t& value) const {
  if (has(field)) value = message_.GetReflection()->GetInt64(message_, &descriptor(field));
}
void FieldReader::read(const char* field, std::uint64_t& value) const {
  if (has(field)) value = message_.GetReflection()->GetUInt64(message_, &descriptor(field));
}
void FieldReader::read(const char* field, double& value) const {
  if (has(field)) value = message_.GetReflection()->GetDouble(message_, &descriptor(field));
}
void FieldReader::read(const char* field, bool& value) const {
  if (has(field)) value = message_.GetReflection()->GetBool(message_, &descriptor(field));
}
void FieldReader::read(const char* field, std::string& value) const {
  if (has(field)) value = message_.GetReflection()->GetString(message_, &descriptor(field));
}
void FieldReader::read(const char* field, std::vector<int>& value) const {
  const auto list =
      message_.GetReflection()->GetRepeatedFieldRef<std::int32_t>(message_, &descriptor(field));
  if (list.size() > 0) value.assign(list.begin(), list.end());
}

template <typename Quantity>
void FieldReader::read_quantity(const char* field, Quantity& value) const {
  if (!has(field)) return;
  std::string text;
  read(field, text);
  if (const auto parsed = Reading<Quantity>::kParse(text)) {
    value = *parsed;
    return;
  }
  add(field, refused_text(Text<Quantity>::accepts(), text, Text<Quantity>::hint(text)));
}

template <typename Quantity>
void FieldReader::require_quantity(const char* field, Quantity& value) const {
  value = Reading<Quantity>::kStandIn;
  if (!has(field)) add(field, "must be given: " + std::string(Reading<Quantity>::kAccepted()));
  read(field, value);
}

void FieldReader::read(const char* field, Bandwidth& value) const {
  read_quantity(field, value);
}
void FieldReader::read(const char* field, Throughput& value) const {
  read_quantity(field, value);
}
void FieldReader::read(const char* field, Duration& value) const {
  read_quantity(field, value);
}
void FieldReader::read(const char* field, Bytes& value) const {
  read_quantity(field, value);
}

void FieldReader::require(const char* field, int& value) const {
  if (!has(field)) add(field, "must be given: a whole number of at least 1");
  read(field, value);
}
void FieldReader::require(const char* field, Bandwidth& value) const {
  require_quantity(field, value);
}
void FieldReader::require(const char* field, Throughput& value) const {
  require_quantity(field, value);
}
void FieldReader::require(const char* field, Bytes& value) const {
  require_quantity(field, value);
}

}  // namespace stepsim
