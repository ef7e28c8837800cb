// WireReader reads the binary format of protocol buffers, field by field, without copying. Readers
// of Chakra traces use it: their files hold millions of small messages.
//
//   WireReader wire(message);
//   while (wire.next()) {
//     if (wire.field() == 1) id = wire.number();
//   }
//   if (!wire.problem().empty()) ...            // "ends inside a field, at byte 17"
//
// Text may be any bytes. Fields that are not looked at are skipped, groups (wire types 3 and 4) are
// refused.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  // Goes to the next field. Returns false at the end, or if there is a problem.
  bool next();

  std::uint32_t field() const { return field_; }
  bool is_number() const { return type_ != 2; }
  // The number of a field; fixed32 and fixed64 as their bits. 0 for bytes.
  std::uint64_t number() const { return number_; }
  // The bytes of a field; none for a number.
  std::string_view bytes() const { return content_; }
  const std::string& problem() const { return problem_; }

 private:
  bool refuse(std::string_view what);

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  std::uint32_t type_ = 0;
  std::uint64_t number_ = 0;
  std::string_view content_;
  std::string problem_;
};

// Reads a varint from `at` on, and moves it behind. Returns nullopt if it is cut off or too long.
std::optional<std::uint64_t> read_varint(std::string_view bytes, std::size_t& at);

// What writers need: the same format, appended to a text.
void append_varint(std::string& text, std::uint64_t value);
void append_number(std::string& text, std::uint32_t field, std::uint64_t value);
void append_bytes(std::string& text, std::uint32_t field, std::string_view value);

}  // namespace stepsim
