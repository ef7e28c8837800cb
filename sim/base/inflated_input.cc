#include "sim/base/inflated_input.h"

#include <algorithm>
#include <new>
#include <string_view>

namespace stepsim {
namespace {

constexpr std::string_view kGzipMark = "\x1f\x8b";
constexpr std::string_view kUnreadable = "can't be read: ";

}  // namespace

InflatedInput::InflatedInput(InputFile& file) : file_(file) {
  file_.rewind();
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  fill();
  is_gzip_ = begins_part();
}

InflatedInput::~InflatedInput() {
  inflateEnd(&stream_);
}

// Afterwards there are two bytes, unless the file ends before.
void InflatedInput::fill() {
  std::copy(rest_.begin(), rest_.end(), compressed_.begin());
  std::size_t filled = rest_.size();
  while (filled < kGzipMark.size()) {
    const std::size_t size = file_.read(std::span(compressed_).subspan(filled));
    if (size == 0) break;
    filled += size;
  }
  rest_ = std::span(compressed_).first(filled);
  if (!file_.problem().empty()) problem_ = std::string(kUnreadable) + file_.problem();
}

bool InflatedInput::begins_part() const {
  return std::string_view(rest_.data(), rest_.size()).starts_with(kGzipMark);
}

std::string InflatedInput::why_unreadable() const {
  if (!file_.problem().empty()) return file_.problem();
  if (problem_.empty()) return {};
  return problem_.starts_with(kUnreadable) ? problem_.substr(kUnreadable.size()) : "it " + problem_;
}

std::span<const char> InflatedInput::next() {
  while (problem_.empty()) {
    if (rest_.size() < kGzipMark.size()) fill();
    if (!problem_.empty()) break;
    if (!is_gzip_) {
      std::copy(rest_.begin(), rest_.end(), block_.begin());
      const std::size_t size = rest_.size();
      rest_ = {};
      return std::span(block_).first(size);
    }
    if (!is_in_part_ && !begins_part()) break;
    if (rest_.empty()) {
      problem_ = "is truncated: the gzip stream stops before its end";
      break;
    }
    if (const std::size_t size = inflate_some(); size > 0) return std::span(block_).first(size);
  }
  return {};
}

std::size_t InflatedInput::inflate_some() {
  is_in_part_ = true;
  stream_.next_in = reinterpret_cast<Bytef*>(rest_.data());
  stream_.avail_in = static_cast<uInt>(rest_.size());
  stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
  stream_.avail_out = static_cast<uInt>(block_.size());
  const int outcome = inflate(&stream_, Z_NO_FLUSH);
  rest_ = rest_.last(stream_.avail_in);
  const std::size_t size = block_.size() - stream_.avail_out;
  inflated_ += static_cast<std::int64_t>(size);
  if (outcome == Z_STREAM_END) {
    is_in_part_ = false;
    inflateReset(&stream_);
  } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
    problem_ =
        std::string("is damaged: ") + (stream_.msg == nullptr ? zError(outcome) : stream_.msg);
  }
  if (inflated_ > most_bytes(file_.kind()).value()) {
    problem_ = std::string(kUnreadable) + too_long(file_.kind(), "decompresses to");
  }
  return problem_.empty() ? size : 0;
}

}  // namespace stepsim
