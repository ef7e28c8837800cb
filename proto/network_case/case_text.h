// CaseText reads a text file, or one compressed with gzip, as a stream of JSON.
//
//   CaseText text(path);
//   std::istream stream(&text);
//   nlohmann::json::sax_parse(stream, ...);
//   if (!text.problem().empty()) ...       // why the file could not be read to its end
//
// The words NaN, Infinity and -Infinity, which many programs write but JSON does not have, come out
// as strings, so that the reader can say which field they are in. A gzip file that stops too early
// or has a wrong checksum is a problem.

#pragma once

#include <zlib.h>

#include <array>
#include <streambuf>
#include <string>

namespace stepsim {

class CaseText final : public std::streambuf {
 public:
  explicit CaseText(const std::string& path);
  ~CaseText() override;
  CaseText(const CaseText&) = delete;
  CaseText& operator=(const CaseText&) = delete;

  // Returns the problem; "" if there is none so far.
  const std::string& problem() const { return problem_; }

 private:
  int_type underflow() override;
  void translate(char character);
  void end_word();

  const std::string path_;
  gzFile file_ = nullptr;
  std::string problem_;
  std::array<char, 1 << 16> block_{};
  std::string translated_;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool in_word_ = false;        // inside NaN or Infinity
  bool is_minus_held_ = false;  // the minus may belong to -Infinity
  bool is_at_end_ = false;
};

}  // namespace stepsim
