// FieldReader puts the fields of a message into a spec, by name.
//
//   FieldReader fields(message, "cluster.torus.", problems);
//   fields.require("link_bandwidth", spec.link_bandwidth);
//   fields.read("link_latency", spec.link_latency);
//   fields.read("cross_rail", spec.cross_rail, {{"pxn", CrossRail::kPxn}, ...});
//
// Quantities are strings in files ("90GB/s"). A field that is absent or can't be read leaves the
// value alone; the latter is reported. require() also reports an absent field, and gives a quantity
// without a value a stand-in that finds no further problems.
//
// REQUIRES of all: the message has a field of that name and type.

#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/problem_list.h"
#include "sim/base/units.h"

namespace stepsim {

class FieldReader {
 public:
  // The message must live as long as the reader. prefix: "cluster.torus."
  FieldReader(const google::protobuf::Message& message, std::string prefix, ProblemList& problems);

  bool has(const char* field) const;

  void read(const char* field, int& value) const;
  void read(const char* field, std::int64_t& value) const;
  void read(const char* field, std::uint64_t& value) const;
  void read(const char* field, double& value) const;
  void read(const char* field, bool& value) const;
  void read(const char* field, std::string& value) const;
  void read(const char* field, Bandwidth& value) const;
  void read(const char* field, Throughput& value) const;
  void read(const char* field, Duration& value) const;
  void read(const char* field, Bytes& value) const;
  void read(const char* field, std::vector<int>& value) const;

  template <typename Value>
  void read(const char* field, std::optional<Value>& value) const {
    if (has(field)) read(field, value.emplace());
  }

  // One of several names, each for a value.
  template <typename Value>
  void read(const char* field, Value& value,
            const std::vector<std::pair<std::string, Value>>& choices) const {
    std::string name;
    read(field, name);
    std::string names;
    for (const auto& [choice, meaning] : choices) {
      if (name == choice) value = meaning;
      if (name == choice) return;
      names += (names.empty() ? "" : " or ") + choice;
    }
    if (has(field)) add(field, "must be " + names + ", is \"" + name + "\"");
  }

  void require(const char* field, int& value) const;
  void require(const char* field, Bandwidth& value) const;
  void require(const char* field, Throughput& value) const;
  void require(const char* field, Bytes& value) const;

  // Reports a problem of a field.
  void add(const char* field, std::string message) const;

 private:
  const google::protobuf::FieldDescriptor& descriptor(const char* field) const;

  template <typename Quantity>
  void read_quantity(const char* field, Quantity& value) const;
  template <typename Quantity>
  void require_quantity(const char* field, Quantity& value) const;

  const google::protobuf::Message& message_;
  std::string prefix_;
  ProblemList& problems_;
};

}  // namespace stepsim
