// PerfettoPackets writes protobuf messages field by field, as Perfetto's format has them:
// docs/trace.md lists the fields. Nothing is built up in memory but the bytes themselves.
//
//   PerfettoPackets packets;
//   const std::size_t packet = packets.begin(1);   // a message in field 1
//   packets.number(8, 1234);                       // uint64 timestamp = 8
//   packets.end(packet);

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepsim {

class PerfettoPackets {
 public:
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

  // Begins a message in a field. Returns what end() needs.
  std::size_t begin(std::uint32_t field) {
    tag(field, kLengthDelimited);
    bytes_.push_back('\0');
    return bytes_.size();
  }
  // The length of most messages fits into the one byte that begin() left for it.
  void end(std::size_t begun) {
    std::uint64_t length = bytes_.size() - begun;
    bytes_[begun - 1] = static_cast<char>(length < 0x80 ? length : (length & 0x7f) | 0x80);
    std::size_t at = begun;
    for (length >>= 7; length != 0; length >>= 7) {
      const auto byte = static_cast<char>(length < 0x80 ? length : (length & 0x7f) | 0x80);
      bytes_.insert(at++, 1, byte);
    }
  }

  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, kVarint);
    varint(value);
  }
  void text(std::uint32_t field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    bytes_.append(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, kFixed64);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
  }
  void real(std::uint32_t field, double value) {
    fixed(field, std::bit_cast<std::uint64_t>(value));
  }

 private:
  static constexpr std::uint32_t kVarint = 0;
  static constexpr std::uint32_t kFixed64 = 1;
  static constexpr std::uint32_t kLengthDelimited = 2;

  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace stepsim
