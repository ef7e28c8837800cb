#include "schedules/pipeline/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline/torch_order.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostProblems = 50;  // a text that is no schedule is not listed word
                                           // by word

struct Place {
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

// Reads "3.0" from the front of `text`.
std::optional<Place> take_place(std::string_view& text) {
  Place place;
  const auto take = [&text](std::int32_t& number, std::int32_t most) {
    const char* end = text.data() + text.size();
    if (text.empty() || text.front() < '0' || text.front() > '9') return false;
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || number >= most) return false;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return true;
  };
  if (!take(place.microbatch, kMostMicrobatches)) return std::nullopt;
  if (text.empty() || text.front() != '.') return std::nullopt;
  text.remove_prefix(1);
  if (!take(place.chunk, kMostChunks)) return std::nullopt;
  return place;
}

std::optional<PipelineOp> parse_op(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, PipelineOpKind>, 5> kKinds = {{
      {"FB", PipelineOpKind::kForwardBackward},
      {"BW", PipelineOpKind::kBackward},
      {"F", PipelineOpKind::kForward},
      {"B", PipelineOpKind::kBackwardInput},
      {"W", PipelineOpKind::kBackwardWeight},
  }};
  for (const auto& [letters, kind] : kKinds) {
    if (!word.starts_with(letters)) continue;
    word.remove_prefix(letters.size());
    const std::optional<Place> first = take_place(word);
    if (!first) return std::nullopt;
    PipelineOp op{kind, first->microbatch, first->chunk};
    if (kind == PipelineOpKind::kForwardBackward) {
      if (word.empty() || word.front() != '/') return std::nullopt;
      word.remove_prefix(1);
      const std::optional<Place> second = take_place(word);
      if (!second) return std::nullopt;
      op.backward_microbatch = second->microbatch;
      op.backward_chunk = second->chunk;
    }
    return word.empty() ? std::optional(op) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

class Reader {
 public:
  PipelineSchedule read(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    int line = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end), ++line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (schedule_.ranks.empty() && problems_.empty()) {
      problems_.push_back({"schedule", "has no ops: a line a rank is needed, like \"F0.0 BW0.0\""});
    }
    check_size();
    throw_if_any(std::move(problems_));
    return std::move(schedule_);
  }

 private:
  void add(int line, std::string message) {
    if (problems_.size() < kMostProblems) {
      problems_.push_back({fmt::format("line {}", line), std::move(message)});
    }
  }

  void read_line(std::string_view text, int line) {
    const std::vector<std::string_view> words = split(text.substr(0, text.find('#')), kBlanks);
    if (words.empty()) return;
    if (words[0].starts_with("placement:")) {
      read_placement(words, line);
      return;
    }
    std::vector<PipelineOp> order;
    for (const std::string_view word : words) {
      if (const std::optional<PipelineOp> op = parse_op(word)) {
        order.push_back(*op);
        count(op->microbatch, op->chunk);
        count(op->backward_microbatch, op->backward_chunk);
      } else {
        add(line, fmt::format("\"{}\" is no op: must be like F3.0, B3.0, W3.0, BW3.0 or FB5.0/2.1 "
                              "(micro-batch.chunk; micro-batch below {}, chunk below {})",
                              word, kMostMicrobatches, kMostChunks));
      }
    }
    schedule_.ranks.push_back(std::move(order));
  }

  void read_placement(const std::vector<std::string_view>& words, int line) {
    const std::string_view first = words[0].substr(words[0].find(':') + 1);
    const std::string_view value = !first.empty() ? first : words.size() > 1 ? words[1] : "";
    const bool is_one_word = words.size() == (first.empty() ? 2U : 1U);
    if (is_one_word && value == "loop") {
      schedule_.placement = Placement::kLoop;
    } else if (is_one_word && value == "v") {
      schedule_.placement = Placement::kV;
    } else if (is_one_word && value == "bidirectional") {
      schedule_.placement = Placement::kBidirectional;
    } else {
      add(line, fmt::format("placement must be loop, v or bidirectional, is \"{}\"", value));
    }
    if (has_placement_) add(line, "placement is given twice");
    has_placement_ = true;
  }

  void count(std::int32_t microbatch, std::int32_t chunk) {
    schedule_.microbatches = std::max(schedule_.microbatches, microbatch + 1);
    schedule_.chunks = std::max(schedule_.chunks, chunk + 1);
  }

  void check_size() {
    if (static_cast<std::int64_t>(schedule_.ranks.size()) * schedule_.microbatches *
            schedule_.chunks >
        kMostForwards) {
      problems_.push_back({"schedule", fmt::format("names {} micro-batches and {} chunks on {} "
                                                   "ranks, more than {} forwards in all",
                                                   schedule_.microbatches, schedule_.chunks,
                                                   schedule_.ranks.size(), kMostForwards)});
    }
  }

  PipelineSchedule schedule_;
  std::vector<Problem> problems_;
  bool has_placement_ = false;
};

}  // namespace

std::string write_schedule(const PipelineSchedule& schedule) {
  std::string text;
  if (schedule.placement == Placement::kV) text = "placement: v\n";
  if (schedule.placement == Placement::kBidirectional) text = "placement: bidirectional\n";
  for (const std::vector<PipelineOp>& order : schedule.ranks) {
    std::string line;
    for (const PipelineOp& op : order) line += (line.empty() ? "" : " ") + to_text(op);
    text += line + '\n';
  }
  return text;
}

PipelineSchedule parse_schedule(std::string_view text) {
  return is_torch_order(text) ? parse_torch_order(text) : Reader().read(text);
}

}  // namespace stepsim
