#include "import/chakra/chakra_node.h"

#include <array>
#include <utility>

#include "import/chakra/wire.h"

namespace stepsim {
namespace {

// Fields of Node.
constexpr std::uint32_t kId = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kType = 3;
constexpr std::uint32_t kControl = 4;
constexpr std::uint32_t kData = 5;
constexpr std::uint32_t kDuration = 7;
constexpr std::uint32_t kInputs = 8;
constexpr std::uint32_t kAttribute = 10;
// Arms of an attribute's value.
constexpr std::uint32_t kFloat = 5;
constexpr std::uint32_t kSigned32 = 15;
constexpr std::uint32_t kSigned64 = 17;
constexpr std::uint32_t kBool = 27;
constexpr std::uint32_t kString = 29;
constexpr std::uint32_t kInt32 = 7;
constexpr std::uint32_t kInt64 = 9;
constexpr std::uint32_t kUint64 = 13;

struct Attribute {
  std::string_view name;
  std::optional<std::int64_t> number;
  std::string_view text;
};

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

void read_attribute(std::string_view message, Attribute& attribute, std::string& problem) {
  WireReader wire(message);
  while (wire.next()) {
    if (wire.field() == 1) {
      attribute.name = wire.bytes();
    } else if (wire.field() == kString) {
      attribute.text = wire.bytes();
    } else if (wire.field() == kSigned32 || wire.field() == kSigned64) {
      attribute.number = zigzag(wire.number());
    } else if (wire.field() > kFloat && wire.field() <= kBool && wire.is_number()) {
      attribute.number = static_cast<std::int64_t>(wire.number());
    }
  }
  if (!wire.problem().empty()) problem = "an attribute " + wire.problem();
}

void take(const Attribute& attribute, ChakraNode& node) {
  if (attribute.name == "pg_name") {
    node.group = attribute.text;
    return;
  }
  if (!attribute.number) return;
  struct Target {
    std::string_view name;
    std::optional<std::int64_t> ChakraNode::*member;
  };
  static constexpr std::array kTargets = {Target{"num_ops", &ChakraNode::flops},
                                          Target{"tensor_size", &ChakraNode::tensor_bytes},
                                          Target{"comm_type", &ChakraNode::collective},
                                          Target{"comm_size", &ChakraNode::bytes},
                                          Target{"comm_src", &ChakraNode::source},
                                          Target{"comm_dst", &ChakraNode::destination},
                                          Target{"comm_tag", &ChakraNode::tag},
                                          Target{"duration_ps", &ChakraNode::picoseconds},
                                          Target{"stream", &ChakraNode::stream}};
  if (attribute.name == "is_cpu_op") node.is_on_host = *attribute.number != 0;
  for (const Target& target : kTargets) {
    if (target.name == attribute.name) node.*target.member = attribute.number;
  }
}

// Ids stand one by one, or packed into bytes.
void read_ids(const WireReader& wire, std::vector<std::uint64_t>& ids, std::string& problem) {
  if (wire.is_number()) {
    ids.push_back(wire.number());
    return;
  }
  std::size_t at = 0;
  while (at < wire.bytes().size()) {
    const std::optional<std::uint64_t> id = read_varint(wire.bytes(), at);
    if (!id) {
      problem = "has a list of ids that is cut off";
      return;
    }
    ids.push_back(*id);
  }
}

std::string_view first_text(std::string_view message) {
  WireReader wire(message);
  std::string_view text;
  while (wire.next()) {
    if (wire.field() == 1) text = wire.bytes();
  }
  return text;
}

// Schema 0.0.1 has node types without METADATA, and fields in place of attributes.
void take_old_field(const WireReader& wire, ChakraNode& node) {
  const auto number = static_cast<std::int64_t>(wire.number());
  // Its all-reduce, all-to-all, all-gather and reduce-scatter as numbers of today.
  static constexpr std::array<std::int64_t, 5> kCollectives = {0, 0, 6, 2, 7};
  switch (wire.field()) {
    case 12:
      node.flops = number;
      break;
    case 13:
      if (number >= 1 && number < 5) node.collective = kCollectives[std::size_t(number)];
      break;
    case 16:
      node.source = number;
      break;
    case 17:
      node.destination = number;
      break;
    case 18:
      node.bytes = number;
      break;
    case 19:
      node.tag = number;
      break;
    default:
      break;
  }
}

void append_attribute(std::string& text, std::string_view name, std::uint32_t arm,
                      std::uint64_t value) {
  std::string attribute;
  append_bytes(attribute, 1, name);
  append_number(attribute, arm, value);
  append_bytes(text, kAttribute, attribute);
}

void append_if(std::string& text, std::string_view name, std::uint32_t arm,
               const std::optional<std::int64_t>& value) {
  if (value) append_attribute(text, name, arm, static_cast<std::uint64_t>(*value));
}

}  // namespace

std::string read_chakra_node(std::string_view message, ChakraNode& node) {
  std::vector<std::uint64_t> after = std::move(node.after);
  std::vector<std::uint64_t> control = std::move(node.control);
  after.clear();
  control.clear();
  node = ChakraNode{};
  node.after = std::move(after);
  node.control = std::move(control);
  std::string problem;
  std::uint64_t type = 0;
  bool is_old = false;
  WireReader wire(message);
  while (wire.next()) {
    switch (wire.field()) {
      case kId:
        node.id = wire.number();
        break;
      case kName:
        node.name = wire.bytes();
        break;
      case kType:
        type = wire.number();
        break;
      case kControl:
        read_ids(wire, node.control, problem);
        break;
      case kData:
        read_ids(wire, node.after, problem);
        break;
      case kDuration:
        node.duration_micros = wire.number();
        break;
      case kInputs:
        node.input_values = first_text(wire.bytes());
        break;
      case kAttribute: {
        Attribute attribute;
        read_attribute(wire.bytes(), attribute, problem);
        take(attribute, node);
        break;
      }
      default:
        is_old = is_old || (wire.field() > kAttribute && wire.is_number());
        take_old_field(wire, node);
    }
  }
  if (!wire.problem().empty()) return wire.problem();
  if (is_old && type > 0) ++type;
  if (type > static_cast<std::uint64_t>(ChakraType::kCollective)) {
    return "has type " + std::to_string(type) + "; there are 0 to 7";
  }
  node.type = static_cast<ChakraType>(type);
  return problem;
}

std::string chakra_message(const ChakraNode& node) {
  std::string text;
  append_number(text, kId, node.id);
  append_bytes(text, kName, node.name);
  append_number(text, kType, static_cast<std::uint64_t>(node.type));
  std::string ids;
  for (const std::uint64_t id : node.after) append_varint(ids, id);
  if (!ids.empty()) append_bytes(text, kData, ids);
  if (node.duration_micros > 0) append_number(text, kDuration, node.duration_micros);
  if (!node.input_values.empty()) {
    std::string inputs;
    append_bytes(inputs, 1, node.input_values);
    append_bytes(text, kInputs, inputs);
  }
  append_attribute(text, "is_cpu_op", kBool, node.is_on_host ? 1 : 0);
  append_if(text, "num_ops", kInt64, node.flops);
  append_if(text, "tensor_size", kUint64, node.tensor_bytes);
  append_if(text, "comm_type", kInt64, node.collective);
  append_if(text, "comm_size", kInt64, node.bytes);
  append_if(text, "comm_src", kInt32, node.source);
  append_if(text, "comm_dst", kInt32, node.destination);
  append_if(text, "comm_tag", kInt32, node.tag);
  append_if(text, "duration_ps", kInt64, node.picoseconds);
  append_if(text, "stream", kInt64, node.stream);
  if (!node.group.empty()) {
    std::string attribute;
    append_bytes(attribute, 1, "pg_name");
    append_bytes(attribute, kString, node.group);
    append_bytes(text, kAttribute, attribute);
  }
  return text;
}

}  // namespace stepsim
