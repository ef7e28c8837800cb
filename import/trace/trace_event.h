// TraceEvent is one event of a Chrome trace: the members that say what ran on a chip, when and
// where.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

struct TraceEvent {
  std::string phase;  // "X"
  std::string category;
  std::string name;
  std::optional<std::int64_t> start{};     // ns
  std::optional<std::int64_t> duration{};  // ns
  std::string process;                     // pid, as text
  std::string thread;
  // args
  std::string text_name;  // of metadata
  std::optional<std::int64_t> correlation{};
  std::optional<std::int64_t> external_id{};
  std::optional<std::int64_t> stream{};
  std::optional<std::int64_t> step{};
  std::optional<std::int64_t> layer{};           // of stepsim's own
  std::optional<std::int64_t> sequence{};        // "Sequence number" of an op of autograd
  std::optional<std::int64_t> forward_thread{};  // "Fwd thread id": not 0 in the backward
  std::string collective;                        // "Collective name", "op"
  std::optional<std::int64_t> in_elements{};
  std::optional<std::int64_t> out_elements{};
  std::optional<std::int64_t> group_size{};
  std::optional<std::int64_t> bytes{};
  std::string type;                      // "dtype"
  std::string group;                     // "Process Group Name"
  std::string group_ranks;               // "Process Group Ranks"
  std::string input_dims;                // "Input Dims", its JSON
  std::string input_types;               // "Input type", its JSON
  std::optional<std::int64_t> waited{};  // ns, of stepsim's own
  bool computes = false;                 // of stepsim's own: "compute_ps", so no slice is inside it

  void clear();
};

// Reads events, one after the other, with simdjson.
class TraceEventReader {
 public:
  TraceEventReader();
  ~TraceEventReader();
  TraceEventReader(const TraceEventReader&) = delete;
  TraceEventReader& operator=(const TraceEventReader&) = delete;

  // Returns what is wrong with the text of an event; empty if nothing is.
  std::string read(std::string_view text, TraceEvent& event);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace stepsim
