#include "proto/network_case/case_text.h"

#include <cctype>
#include <cerrno>
#include <cstring>

namespace stepsim {

CaseText::CaseText(const std::string& path) : path_(path) {
  errno = 0;
  file_ = gzopen(path.c_str(), "rb");
  if (file_ == nullptr) {
    problem_ =
        std::string("can't be read: ") + (errno != 0 ? std::strerror(errno) : "not enough memory");
  }
}

CaseText::~CaseText() {
  if (file_ != nullptr) gzclose(file_);
}

CaseText::int_type CaseText::underflow() {
  translated_.clear();
  while (translated_.empty() && file_ != nullptr && !is_at_end_) {
    const int size = gzread(file_, block_.data(), static_cast<unsigned>(block_.size()));
    for (int i = 0; i < size; ++i) translate(block_[static_cast<std::size_t>(i)]);
    if (size > 0) continue;
    is_at_end_ = true;
    if (is_minus_held_) translated_ += '-';
    if (in_word_) end_word();
    int error = Z_OK;
    std::string message = gzerror(file_, &error);
    if (message.starts_with(path_ + ": ")) message.erase(0, path_.size() + 2);
    if (error == Z_BUF_ERROR) {
      problem_ = "is truncated: the gzip stream stops before its end";
    } else if (error == Z_ERRNO) {
      problem_ = std::string("can't be read: ") + std::strerror(errno);
    } else if (error != Z_OK && error != Z_STREAM_END) {
      problem_ = std::string("is damaged: ") + message;
    }
  }
  setg(translated_.data(), translated_.data(), translated_.data() + translated_.size());
  return translated_.empty() ? traits_type::eof() : traits_type::to_int_type(translated_.front());
}

void CaseText::end_word() {
  translated_ += '"';
  in_word_ = false;
}

void CaseText::translate(char character) {
  if (in_word_) {
    if (std::isalpha(static_cast<unsigned char>(character)) != 0) {
      translated_ += character;
      return;
    }
    end_word();
  }
  if (in_string_) {
    in_string_ = is_escaped_ || character != '"';
    is_escaped_ = !is_escaped_ && character == '\\';
  } else if (character == 'N' || character == 'I') {
    in_word_ = true;
    translated_ += is_minus_held_ ? "\"-" : "\"";
    is_minus_held_ = false;
  } else {
    in_string_ = character == '"';
    if (is_minus_held_) translated_ += '-';
    is_minus_held_ = character == '-';
    if (is_minus_held_) return;
  }
  translated_ += character;
}

}  // namespace stepsim
