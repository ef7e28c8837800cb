// InflatedInput reads a file, and decompresses it if it is compressed with gzip.
//
// A gzip file that stops too early, has a wrong checksum or decompresses to more bytes than
// most_bytes() is a problem. As in gzip, several compressed parts may follow one another, and what
// stands behind them is ignored.

#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sim/base/input_file.h"

namespace stepsim {

class InflatedInput {
 public:
  // Starts at the file's first byte. The file must outlive this.
  explicit InflatedInput(InputFile& file);
  ~InflatedInput();
  InflatedInput(const InflatedInput&) = delete;
  InflatedInput& operator=(const InflatedInput&) = delete;

  // Returns the next bytes, valid until the next call; none at the end and after a problem.
  std::span<const char> next();

  // Returns the problem as a sentence about the file; empty if there is none so far.
  const std::string& problem() const { return problem_; }
  // The same behind "can't be read: ".
  std::string why_unreadable() const;

 private:
  void fill();
  bool begins_part() const;
  std::size_t inflate_some();

  InputFile& file_;
  z_stream stream_{};
  bool is_gzip_ = false;
  bool is_in_part_ = false;
  std::array<char, 1 << 16> compressed_{};
  std::span<char> rest_{};  // of compressed_
  std::array<char, 1 << 16> block_{};
  std::int64_t inflated_ = 0;
  std::string problem_;
};

}  // namespace stepsim
