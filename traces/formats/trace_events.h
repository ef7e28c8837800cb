// TraceEvents writes the events of one Chrome trace, as JSON for ui.perfetto.dev. What they say is
// the caller's: traces/formats/chrome_sink.h (training steps), traces/formats/serving_trace.h
// (requests).
//
//   TraceEvents events(out);
//   events.begin();
//   events.append(R"({{"ph":"X","name":"{}","ts":)", name);
//   events.append_time({1234});   // 1.234
//   events.append_text("}");
//   events.end();
//
// Times are microseconds with three decimals, printed from integers. Memory does not grow.

#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "traces/files/output_file.h"

namespace stepsim {

// Microseconds is a number of nanoseconds that prints as exact microseconds: 1234 as 1.234.
struct Microseconds {
  std::int64_t nanoseconds = 0;
};

class TraceEvents {
 public:
  explicit TraceEvents(OutputFile& out) : out_(out) {
    append(R"({{"displayTimeUnit":"ns","traceEvents":[)");
  }

  // Starts a new event. Its text follows with append().
  void begin() {
    if (buffer_.size() >= kFlushAt) flush();
    append("{}", first_ ? "\n" : ",\n");
    first_ = false;
  }

  template <typename... Arguments>
  void append(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Arguments>(arguments)...);
  }
  void append_time(Microseconds time) {
    fmt::format_to(std::back_inserter(buffer_), FMT_COMPILE("{}.{:03}"), time.nanoseconds / 1000,
                   time.nanoseconds % 1000);
  }
  void append_text(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
  }

  // `more`: members of the object behind the events, each after a comma.
  void end(std::string_view more = "") {
    append_text("\n]");
    append_text(more);
    append_text("}\n");
    flush();
  }

 private:
  static constexpr std::size_t kFlushAt = std::size_t{1} << 16;

  void flush() {
    out_.write({buffer_.data(), buffer_.size()});
    buffer_.clear();
  }

  OutputFile& out_;
  fmt::memory_buffer buffer_;
  bool first_ = true;
};

}  // namespace stepsim
