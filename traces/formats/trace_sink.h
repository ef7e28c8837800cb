// TraceSink takes the events of a trace and writes them in one format. What they say is the
// caller's: traces/formats/run_trace.h (training steps), traces/formats/serving_trace.h (requests).
//
//   sink.process({.process = 1, .name = "rank 0", .position = 0});
//   sink.thread({.track = {1, 2}, .name = "compute", .position = 0});
//   sink.open({.track = {1, 2}, .span = {0, 1500}, .name = "F 3", .category = "forward"});
//   sink.open({.track = {1, 2}, .span = {0, 700}, .name = "qkv_projection"});   // inside it
//   sink.close();
//   sink.close();
//
// Times are whole nanoseconds. Slices of a track come in order of their begin, and those of one
// track that are open at a time lie one in the other. Nothing is kept but what is open, so memory
// does not grow with the trace.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stepsim {

struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }
};

// Process 0 is reserved by readers.
struct TraceTrack {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
};

using TraceValue = std::variant<std::int64_t, double, std::string, std::vector<std::string>>;
struct TraceArgument {
  std::string_view key;
  TraceValue value;
};

// One end of an arrow, inside a slice: at its tail or its head. The two ends of an arrow have one
// number, and the head is not before the tail.
struct TraceArrowEnd {
  std::uint64_t number = 0;
  bool is_head = false;
  std::int64_t at = 0;
  std::string_view name;
};

struct SliceEvent {
  TraceTrack track;
  Span span;
  std::string_view name;
  std::string_view category;  // several are separated by commas
  std::string_view colour{};  // a name that Chrome's viewer reserves; "": by the slice's name
  std::span<const TraceArgument> arguments{};
  std::span<const TraceArrowEnd> arrows{};
};

// What a mark in the lane of a slice that has no length says.
struct TraceInstant {
  TraceTrack track;
  std::int64_t at = 0;
  std::string_view name;
  std::string_view category;
  std::span<const TraceArgument> arguments{};
};

// A value from an instant on.
struct TraceSample {
  std::uint32_t process = 0;
  std::string_view name;
  std::string_view unit;  // "bytes", "percent"
  std::int64_t at = 0;
  double value = 0;
};

// TraceSummary counts what was written, so that it can be compared with what a reader finds.
struct TraceSummary {
  std::uint64_t slices = 0;
  std::uint64_t instants = 0;
  std::uint64_t arrows = 0;
  std::uint64_t counter_samples = 0;
  friend bool operator==(const TraceSummary&, const TraceSummary&) = default;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;

  virtual void process(std::uint32_t process, std::string_view name, std::size_t position) = 0;
  virtual void thread(TraceTrack track, std::string_view name, std::size_t position) = 0;
  // What holds for the whole trace.
  virtual void metadata(std::string_view key, const std::string& value) = 0;

  virtual void open(const SliceEvent& slice) = 0;
  virtual void close() = 0;  // the slice that was opened last
  virtual void instant(const TraceInstant& instant) = 0;
  virtual void sample(const TraceSample& sample) = 0;

  // Nothing may follow. Does not commit the file.
  virtual void end() = 0;

  const TraceSummary& summary() const { return summary_; }

 protected:
  TraceSummary summary_;
};

}  // namespace stepsim
