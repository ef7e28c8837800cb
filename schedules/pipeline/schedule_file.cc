#include "schedules/pipeline/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "schedules/pipeline/replay/replay.h"

namespace stepsim {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::int32_t kMostWrittenMicrobatches = 1 << 20;
constexpr std::int32_t kMostWrittenChunks = 1 << 10;
constexpr std::int64_t kMostWrittenForwards = 1 << 24;
constexpr std::size_t kMostProblems = 50;  // a file that is no schedule at all is not listed word
                                           // by word

struct Place {
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

// Reads "3.0" off the front of `text`.
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
  if (!take(place.microbatch, kMostWrittenMicrobatches)) return std::nullopt;
  if (text.empty() || text.front() != '.') return std::nullopt;
  text.remove_prefix(1);
  if (!take(place.chunk, kMostWrittenChunks)) return std::nullopt;
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
                              word, kMostWrittenMicrobatches, kMostWrittenChunks));
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
        kMostWrittenForwards) {
      problems_.push_back({"schedule", fmt::format("names {} micro-batches and {} chunks on {} "
                                                   "ranks, more than {} forwards in all",
                                                   schedule_.microbatches, schedule_.chunks,
                                                   schedule_.ranks.size(), kMostWrittenForwards)});
    }
  }

  PipelineSchedule schedule_;
  std::vector<Problem> problems_;
  bool has_placement_ = false;
};

// "F0.0, F1.0, F2.0 and 17 more"
std::string listed(const std::vector<std::string>& ops) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(kShown, ops.size());
  std::string text = fmt::format(
      "{}", fmt::join(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < ops.size()) text += fmt::format(" and {} more", ops.size() - shown);
  return text;
}

// The ops of one rank against what it must run.
class RankCheck {
 public:
  RankCheck(const PipelineSchedule& schedule, std::int32_t rank)
      : schedule_(schedule),
        rank_(rank),
        seen_(static_cast<std::size_t>(schedule.microbatches) *
              static_cast<std::size_t>(schedule.chunks)) {}

  void run(std::vector<Problem>& problems) {
    for (const PipelineOp& op : schedule_.ranks[static_cast<std::size_t>(rank_)]) book(op);
    for (std::int32_t i = 0; i < schedule_.microbatches; ++i) {
      for (std::int32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (runs(i, chunk)) note_missing(i, chunk);
      }
    }
    const auto add = [&](const std::vector<std::string>& ops, const std::string& what) {
      if (!ops.empty()) problems.push_back({fmt::format("rank {}", rank_), what + listed(ops)});
    };
    add(missing_, "misses ");
    add(doubled_, "has more than once ");
    add(unknown_, "has ops that it can't have: ");
    add(misplaced_, "has in illegal order ");
  }

 private:
  struct Seen {
    bool forward = false;
    bool input = false;
    bool weight = false;
    bool whole = false;  // BW or FB: input and weight in one
  };

  bool runs(std::int32_t microbatch, std::int32_t chunk) const {
    if (microbatch < 0 || microbatch >= schedule_.microbatches) return false;
    if (chunk < 0 || chunk >= schedule_.chunks) return false;
    if (schedule_.placement != Placement::kBidirectional) return true;
    return chunk == (microbatch < schedule_.microbatches / 2 ? 0 : 1);
  }
  Seen& at(std::int32_t microbatch, std::int32_t chunk) {
    return seen_[static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(schedule_.chunks) +
                 static_cast<std::size_t>(chunk)];
  }

  void book(const PipelineOp& op) {
    const std::string text = to_text(op);
    const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
    if (!runs(op.microbatch, op.chunk) ||
        (is_fused && !runs(op.backward_microbatch, op.backward_chunk))) {
      unknown_.push_back(text);
      return;
    }
    Seen& seen = at(op.microbatch, op.chunk);
    switch (op.kind) {
      case PipelineOpKind::kForward:
        return book_forward(seen, text);
      case PipelineOpKind::kBackward:
        return book_whole(seen, text);
      case PipelineOpKind::kBackwardInput:
        if (seen.input) doubled_.push_back(text);
        if (!seen.forward) misplaced_.push_back(text + " before its F");
        seen.input = true;
        return;
      case PipelineOpKind::kBackwardWeight:
        if (seen.weight) doubled_.push_back(text);
        if (!seen.input) misplaced_.push_back(text + " before its B");
        seen.weight = true;
        return;
      case PipelineOpKind::kForwardBackward:
        break;
    }
    // Its backward can't be that of its own forward, or of a later one.
    book_whole(at(op.backward_microbatch, op.backward_chunk), text);
    book_forward(seen, text);
  }

  void book_forward(Seen& seen, const std::string& text) {
    if (seen.forward) doubled_.push_back(text);
    seen.forward = true;
  }
  void book_whole(Seen& seen, const std::string& text) {
    if (seen.input || seen.weight) doubled_.push_back(text);
    if (!seen.forward) misplaced_.push_back(text + " before its F");
    seen.input = true;
    seen.weight = true;
    seen.whole = true;
  }

  void note_missing(std::int32_t microbatch, std::int32_t chunk) {
    const Seen& seen = at(microbatch, chunk);
    const auto note = [&](PipelineOpKind kind) {
      missing_.push_back(to_text({kind, microbatch, chunk}));
    };
    if (!seen.forward) note(PipelineOpKind::kForward);
    if (!seen.input && !seen.weight) note(PipelineOpKind::kBackward);
    if (!seen.input && seen.weight) note(PipelineOpKind::kBackwardInput);
    if (seen.input && !seen.weight) note(PipelineOpKind::kBackwardWeight);
  }

  const PipelineSchedule& schedule_;
  std::int32_t rank_;
  std::vector<Seen> seen_;
  std::vector<std::string> missing_;
  std::vector<std::string> doubled_;
  std::vector<std::string> unknown_;
  std::vector<std::string> misplaced_;
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
  return Reader().read(text);
}

std::vector<Problem> check_order(const PipelineSchedule& schedule) {
  std::vector<Problem> problems;
  if (schedule.placement == Placement::kBidirectional &&
      (schedule.chunks != 2 || schedule.microbatches % 2 != 0)) {
    return {{"placement", fmt::format("bidirectional needs 2 chunks and an even number of "
                                      "micro-batches, has {} and {}",
                                      schedule.chunks, schedule.microbatches)}};
  }
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    RankCheck(schedule, rank).run(problems);
  }
  if (!problems.empty()) return problems;
  const std::string cycle = find_cycle(schedule);
  if (!cycle.empty()) {
    problems.push_back({"schedule", "can't run, its ranks wait for each other:" + cycle});
  }
  return problems;
}

}  // namespace stepsim
