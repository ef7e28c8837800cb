// TraceEventFile reads a file of Chrome trace events (PyTorch's Kineto, stepsim's own) in a stream:
// an object with `traceEvents`, or the list alone; also compressed with gzip. Only one event is in
// memory at a time, so a file of any length takes as much memory as its largest event, at most
// 16 MiB.
//
//   TraceEventFile file(path);
//   while (file.next()) use(file.event(), file.offset());
//   file.header("distributedInfo");        // text of another member; "" if there is none
//   if (!file.problem().empty()) ...       // "ends inside event 17, at byte 4096"
//
// Problems name the byte of the (decompressed) text. Cost: O(bytes), about 1 GB/s.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "import/trace/trace_event.h"

namespace stepsim {

class TraceEventFile {
 public:
  explicit TraceEventFile(const std::string& path);
  ~TraceEventFile();
  TraceEventFile(const TraceEventFile&) = delete;
  TraceEventFile& operator=(const TraceEventFile&) = delete;

  // Goes to the next event. Returns false at the end, and if there is a problem.
  bool next();

  std::string_view event() const { return event_; }  // valid until next()
  std::size_t offset() const { return offset_; }     // of its first byte
  std::size_t events() const { return events_; }     // so far
  std::size_t bytes() const { return dropped_ + buffer_.size(); }

  // The text of another member of the file's object, complete once next() has returned false.
  // Members of more than 1 MiB are skipped.
  std::string_view header(const std::string& name) const;

  // Says that an event can't be used. next() then returns false.
  void refuse(const std::string& what);
  const std::string& problem() const { return problem_; }

 private:
  struct Input;
  enum class State { kStart, kInObject, kInEvents, kEnd };

  bool more();  // reads another block; false at the end of the file
  bool skip_space();
  bool fail(const std::string& what);
  bool start();
  bool next_member();
  bool next_event();
  bool scan_value(std::size_t& end);  // from at_ on
  bool scan_string(std::size_t& at);
  std::string where() const;

  std::unique_ptr<Input> input_;
  State state_ = State::kStart;
  bool is_in_object_ = false;
  std::string buffer_;
  std::size_t at_ = 0;       // in the buffer
  std::size_t dropped_ = 0;  // bytes before the buffer
  std::string_view event_;
  std::size_t offset_ = 0;
  std::size_t events_ = 0;
  std::map<std::string, std::string> headers_;
  std::string problem_;
};

// Calls take(event) for each event of the file. An event that can't be read is refused, with what
// is wrong.
template <typename Take>
void read_events(TraceEventFile& file, Take take) {
  TraceEventReader reader;
  TraceEvent event;
  while (file.next()) {
    const std::string problem = reader.read(file.event(), event);
    if (problem.empty()) {
      take(event);
    } else {
      file.refuse(problem);
    }
  }
}

}  // namespace stepsim
