// ChakraNode is one node of a Chakra trace as its message has it, before ids mean anything.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

enum class ChakraType : std::uint8_t {
  kInvalid,
  kMetadata,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kReceive,
  kCollective
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string_view name;  // of the message's bytes
  ChakraType type = ChakraType::kInvalid;
  std::vector<std::uint64_t> after;    // data_deps
  std::vector<std::uint64_t> control;  // ctrl_deps
  std::uint64_t duration_micros = 0;
  std::string_view input_values;  // of metadata: the groups
  bool is_on_host = false;
  std::optional<std::int64_t> flops{};  // num_ops
  std::optional<std::int64_t> tensor_bytes{};
  std::optional<std::int64_t> collective{};  // comm_type
  std::optional<std::int64_t> bytes{};       // comm_size
  std::optional<std::int64_t> source{};
  std::optional<std::int64_t> destination{};
  std::optional<std::int64_t> tag{};
  std::optional<std::int64_t> picoseconds{};  // duration_ps: the time exactly, in files of stepsim
  std::optional<std::int64_t> stream{};
  std::string_view group{};  // pg_name
};

// Reads a node's message. Returns what is wrong with it; empty if nothing is. `node` keeps its
// memory from one message to the next.
std::string read_chakra_node(std::string_view message, ChakraNode& node);

// Appends the message of a node, as schema 0.0.4 has it.
std::string chakra_message(const ChakraNode& node);

}  // namespace stepsim
