#include "import/trace/trace_event_file.h"

#include <algorithm>
#include <cstring>

#include "sim/base/inflated_input.h"
#include "sim/base/input_file.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostEventBytes = 16 << 20;
constexpr std::size_t kMostHeaderBytes = 1 << 20;
constexpr std::size_t kMostHeaders = 1000;
constexpr int kMostTraceNesting = 64;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

}  // namespace

struct TraceEventFile::Input {
  explicit Input(const std::string& path) : file(path, InputKind::kCase), inflated(file) {}
  InputFile file;
  InflatedInput inflated;
};

TraceEventFile::TraceEventFile(const std::string& path) : input_(std::make_unique<Input>(path)) {}
TraceEventFile::~TraceEventFile() = default;

std::string TraceEventFile::where() const {
  return ", at byte " + std::to_string(dropped_ + at_);
}

bool TraceEventFile::fail(const std::string& what) {
  const std::string of_file =
      input_->file.problem().empty() ? input_->inflated.problem() : input_->file.problem();
  problem_ = of_file.empty() ? what + where()
                             : "can't be read: " + of_file +
                                   (events_ > 0 ? ", behind event " + std::to_string(events_) : "");
  state_ = State::kEnd;
  return false;
}

void TraceEventFile::refuse(const std::string& what) {
  problem_ = what + ", in event " + std::to_string(events_) + " at byte " + std::to_string(offset_);
  state_ = State::kEnd;
}

// Reads another block. What stands before at_ is dropped once it is long.
bool TraceEventFile::more() {
  if (at_ > (1 << 16)) {
    buffer_.erase(0, at_);
    dropped_ += at_;
    at_ = 0;
  }
  const auto block = input_->inflated.next();
  buffer_.append(block.data(), block.size());
  return !block.empty();
}

bool TraceEventFile::skip_space() {
  while (true) {
    while (at_ < buffer_.size() && is_space(buffer_[at_])) ++at_;
    if (at_ < buffer_.size()) return true;
    if (!more()) return false;
  }
}

// Moves `at`, which stands behind the opening quote, behind the closing one. Blocks that more()
// reads move the buffer, so places count from at_.
bool TraceEventFile::scan_string(std::size_t& at) {
  while (true) {
    const std::size_t begin = at_ + at;
    const auto* const found = begin < buffer_.size()
                                  ? static_cast<const char*>(std::memchr(
                                        buffer_.data() + begin, '"', buffer_.size() - begin))
                                  : nullptr;
    if (found == nullptr) {
      if (buffer_.size() - at_ > kMostEventBytes) return false;
      if (!more()) return false;
      continue;
    }
    const auto quote = static_cast<std::size_t>(found - buffer_.data()) - at_;
    std::size_t slashes = 0;
    while (slashes < quote && buffer_[at_ + quote - 1 - slashes] == '\\') ++slashes;
    at = quote + 1;
    if (slashes % 2 == 0) return true;
  }
}

// Finds the end of the value that begins at at_, as a distance from it.
bool TraceEventFile::scan_value(std::size_t& end) {
  int depth = 0;
  std::size_t at = 0;
  while (true) {
    if (at_ + at == buffer_.size()) {
      if (buffer_.size() - at_ > kMostEventBytes) return fail("has a value of more than 16 MiB");
      if (more()) continue;
      end = at;
      return depth == 0 && at > 0;  // a number may end the file
    }
    const char c = buffer_[at_ + at];
    if (c == '"') {
      ++at;
      if (!scan_string(at)) return false;
      if (depth == 0) break;
    } else if (c == '{' || c == '[') {
      ++at;
      if (++depth > kMostTraceNesting) return fail("is nested more than 64 deep");
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;  // ends a number
      ++at;
      if (--depth == 0) break;
    } else if (depth == 0 && (c == ',' || is_space(c))) {
      break;
    } else {
      ++at;
    }
  }
  end = at;
  return at > 0;
}

bool TraceEventFile::start() {
  if (!skip_space()) return fail("is empty");
  if (buffer_.starts_with("\xef\xbb\xbf")) at_ = 3;
  if (!skip_space()) return fail("is empty");
  const char c = buffer_[at_];
  if (c != '{' && c != '[') return fail("is no trace: it must begin with { or [");
  ++at_;
  is_in_object_ = c == '{';
  state_ = is_in_object_ ? State::kInObject : State::kInEvents;
  return true;
}

// Reads "name": value. Stops before the first event of traceEvents.
bool TraceEventFile::next_member() {
  if (!skip_space()) return fail("ends inside its object");
  if (buffer_[at_] == ',') {
    ++at_;
    return true;
  }
  if (buffer_[at_] == '}') {
    state_ = State::kEnd;
    return true;
  }
  if (buffer_[at_] != '"') return fail("must have a name in quotes");
  std::size_t end = 1;
  if (!scan_string(end)) return fail("ends inside a name");
  const std::string name = buffer_.substr(at_ + 1, end - 2);
  at_ += end;
  if (!skip_space() || buffer_[at_] != ':')
    return fail("must have a colon behind \"" + name.substr(0, 40) + "\"");
  ++at_;
  if (!skip_space()) return fail("ends before a value");
  if (name == "traceEvents" && buffer_[at_] == '[') {
    ++at_;
    state_ = State::kInEvents;
    return true;
  }
  if (!scan_value(end))
    return problem_.empty() ? fail("ends inside \"" + name.substr(0, 40) + "\"") : false;
  if (end <= kMostHeaderBytes && headers_.size() < kMostHeaders) {
    headers_[name] = buffer_.substr(at_, end);
  }
  at_ += end;
  return true;
}

bool TraceEventFile::next_event() {
  while (true) {
    if (!skip_space()) return fail("ends behind event " + std::to_string(events_));
    if (buffer_[at_] != ',') break;
    ++at_;
  }
  if (buffer_[at_] == ']') {
    ++at_;
    state_ = is_in_object_ ? State::kInObject : State::kEnd;
    return true;
  }
  ++events_;
  offset_ = dropped_ + at_;
  if (buffer_[at_] != '{') {
    refuse("must be an object");
    return false;
  }
  std::size_t end = 0;
  if (!scan_value(end)) {
    if (!problem_.empty()) return false;
    at_ = buffer_.size();
    fail("ends inside event " + std::to_string(events_) + ", which begins at byte " +
         std::to_string(offset_));
    return false;
  }
  event_ = std::string_view(buffer_).substr(at_, end);
  at_ += end;
  return true;
}

bool TraceEventFile::next() {
  event_ = {};
  while (state_ != State::kEnd) {
    const bool is_good = state_ == State::kStart      ? start()
                         : state_ == State::kInObject ? next_member()
                                                      : next_event();
    if (!is_good) return false;
    if (!event_.empty()) return true;
  }
  return false;
}

std::string_view TraceEventFile::header(const std::string& name) const {
  const auto found = headers_.find(name);
  return found == headers_.end() ? std::string_view() : found->second;
}

}  // namespace stepsim
