// CaseText is the text of a network case, which may be compressed with gzip, as a stream of JSON.
//
// The words NaN, Infinity and -Infinity, which many programs write but JSON does not have, come out
// as strings, so that the reader can say which field they are in. Texts and gaps of more than 16
// MiB are a problem, because JSON's parser keeps each in memory.

#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "proto/messages/json_value.h"
#include "sim/base/inflated_input.h"

namespace stepsim {

class CaseText final : public JsonText {
 public:
  // Starts at the file's first byte. The file must outlive this.
  explicit CaseText(InputFile& file) : input_(file) {}

  // Returns why the file could not be read to its end; empty if there is no problem so far.
  const std::string& problem() const { return problem_.empty() ? input_.problem() : problem_; }

 private:
  std::span<char> next_block() override;
  void translate(char character);
  void end_word();

  InflatedInput input_;
  std::string problem_;
  std::string translated_;
  std::size_t length_ = 0;  // since the last bracket, colon or comma
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool in_word_ = false;        // inside NaN or Infinity
  bool is_minus_held_ = false;  // the minus may belong to -Infinity
  bool is_at_end_ = false;
};

}  // namespace stepsim
