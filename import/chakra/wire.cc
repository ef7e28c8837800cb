#include "import/chakra/wire.h"

namespace stepsim {
namespace {

std::optional<std::uint64_t> read_fixed(std::string_view bytes, std::size_t& at,
                                        std::size_t width) {
  if (bytes.size() - at < width) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  at += width;
  return value;
}

}  // namespace

std::optional<std::uint64_t> read_varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (std::uint32_t shift = 0; shift < 64; shift += 7) {
    if (at == bytes.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

bool WireReader::refuse(std::string_view what) {
  problem_ = std::string(what) + ", at byte " + std::to_string(at_);
  return false;
}

bool WireReader::next() {
  if (at_ == bytes_.size() || !problem_.empty()) return false;
  const std::optional<std::uint64_t> tag = read_varint(bytes_, at_);
  if (!tag || *tag >> 3 == 0 || *tag >> 32 != 0) return refuse("has no field");
  field_ = static_cast<std::uint32_t>(*tag >> 3);
  type_ = static_cast<std::uint32_t>(*tag & 7);
  content_ = {};
  number_ = 0;
  if (type_ == 3 || type_ == 4 || type_ > 5) return refuse("has a field of no known type");
  const std::optional<std::uint64_t> value = type_ == 1   ? read_fixed(bytes_, at_, 8)
                                             : type_ == 5 ? read_fixed(bytes_, at_, 4)
                                                          : read_varint(bytes_, at_);
  if (!value) return refuse("ends inside a field");
  if (type_ != 2) {
    number_ = *value;
    return true;
  }
  if (*value > bytes_.size() - at_) return refuse("ends inside a field");
  content_ = bytes_.substr(at_, static_cast<std::size_t>(*value));
  at_ += content_.size();
  return true;
}

void append_varint(std::string& text, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
  text += static_cast<char>(value);
}

void append_number(std::string& text, std::uint32_t field, std::uint64_t value) {
  append_varint(text, std::uint64_t{field} << 3);
  append_varint(text, value);
}

void append_bytes(std::string& text, std::uint32_t field, std::string_view value) {
  append_varint(text, (std::uint64_t{field} << 3) | 2);
  append_varint(text, value.size());
  text += value;
}

}  // namespace stepsim
