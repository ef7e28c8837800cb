#include "import/goal/goal.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "import/input_bytes.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostGoalProblems = 20;
constexpr std::size_t kMostStarts = 10'000'000;
constexpr std::uint32_t kMostGoalRanks = 1 << 20;
constexpr std::int64_t kMostGoalTime = std::numeric_limits<std::int64_t>::max() / 1000;  // ns

// The parts of a line; braces, colons and commas stand by themselves.
std::vector<std::string_view> goal_words(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < line.size()) {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\r' || c == ',') {
      ++at;
    } else if (c == '{' || c == '}' || c == ':') {
      words.push_back(line.substr(at++, 1));
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r,{}:", at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

class GoalReader {
 public:
  GoalReader(const std::string& path, std::vector<Problem>& problems)
      : path_(short_name(path)), problems_(problems) {}

  GoalJob read(std::string_view text) {
    for (std::string_view line : split_text(text, '\n')) {
      ++line_;
      const std::size_t comment = std::min(line.find("//"), line.find('#'));
      take(goal_words(line.substr(0, comment)));
      if (problems_.size() >= kMostGoalProblems) return {};
    }
    if (rank_) refuse("ends inside rank " + std::to_string(*rank_));
    if (!has_ranks_) refuse("must begin with num_ranks N");
    if (!problems_.empty()) return {};
    for (RankDraft& draft : drafts_) read_.job.programs.push_back(finish(draft));
    if (!problems_.empty()) return {};
    if (ignores_nic_)
      read_.notes.emplace_back("nic has no counterpart: every rank has its chip's links");
    return std::move(read_);
  }

 private:
  struct RankDraft {
    std::vector<TraceNode> nodes;
    std::vector<std::vector<std::uint32_t>> after;
    // Nodes that wait for the start of another.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> after_start;
    std::unordered_map<std::string, std::uint32_t> labels;
  };

  void refuse(const std::string& message) {
    if (problems_.size() < kMostGoalProblems) {
      problems_.push_back({path_ + ":" + std::to_string(line_), message});
    }
  }

  void take(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    if (!has_ranks_) return begin_job(words);
    if (!rank_) return begin_rank(words);
    if (words[0] == "}") {
      rank_.reset();
      if (words.size() > 1) refuse("must have nothing behind }");
      return;
    }
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      return add_dependency(words);
    }
    if (words.size() >= 4 && words[1] == ":") return add_op(std::string(words[0]), words, 2);
    add_op("", words, 0);
  }

  void begin_job(const std::vector<std::string_view>& words) {
    const auto ranks = words.size() == 2 ? number_in<std::uint32_t>(words[1]) : std::nullopt;
    has_ranks_ = true;
    if (words[0] != "num_ranks" || !ranks || *ranks < 1 || *ranks > kMostGoalRanks) {
      return refuse("must be num_ranks and a number, 1 to 1048576");
    }
    read_.job.source = "goal";
    read_.job.ranks = *ranks;
    read_.job.groups = {all_ranks(*ranks)};
    read_.job.names = {"calc", "send", "recv"};
    drafts_.resize(*ranks);
  }

  void begin_rank(const std::vector<std::string_view>& words) {
    const auto rank = words.size() == 3 ? number_in<std::uint32_t>(words[1]) : std::nullopt;
    if (words[0] != "rank" || !rank || words.back() != "{") return refuse("must be: rank N {");
    rank_ = *rank;
    if (*rank >= drafts_.size()) refuse("rank must be below num_ranks");
  }

  RankDraft& draft() { return drafts_[*rank_ < drafts_.size() ? *rank_ : 0]; }

  void add_dependency(const std::vector<std::string_view>& words) {
    if (drafts_.empty()) return;
    const auto after = draft().labels.find(std::string(words[0]));
    const auto before = draft().labels.find(std::string(words[2]));
    if (after == draft().labels.end() || before == draft().labels.end()) {
      return refuse("names a label that no line above has");
    }
    if (words[1] == "requires") {
      draft().after[after->second].push_back(before->second);
    } else {
      draft().after_start.emplace_back(after->second, before->second);
    }
  }

  static std::optional<std::int64_t> size_in(std::string_view text) {
    if (text.ends_with('b')) text.remove_suffix(1);
    return number_in<std::int64_t>(text);
  }

  // words from `at` on: calc T | send Nb to P | recv Nb from P, then tag, cpu and nic.
  void add_op(const std::string& label, const std::vector<std::string_view>& words,
              std::size_t at) {
    if (drafts_.empty()) return;
    const std::string_view what = words[at];
    const std::size_t left = words.size() - at;
    TraceNode node;
    std::size_t used = 0;
    if (what == "calc" && left >= 2) {
      node.kind = TraceNodeKind::kKernel;
      const auto time = number_in<std::int64_t>(words[at + 1]);
      if (!time || *time < 0 || *time > kMostGoalTime) return refuse("calc takes nanoseconds");
      node.time = Duration(1000) * *time;
      node.lane = 0;
      used = 2;
    } else if ((what == "send" || what == "recv") && left >= 4) {
      const bool is_send = what == "send";
      node.kind = is_send ? TraceNodeKind::kSend : TraceNodeKind::kReceive;
      node.name = is_send ? 1 : 2;
      const auto bytes = size_in(words[at + 1]);
      const auto peer = number_in<std::uint32_t>(words[at + 3]);
      if (!bytes || *bytes < 0 || *bytes > kMostCollectiveBytes.value() || !peer ||
          *peer >= drafts_.size() || words[at + 2] != (is_send ? "to" : "from")) {
        return refuse("must be: send Nb to RANK, or recv Nb from RANK");
      }
      node.bytes = Bytes(*bytes);
      node.peer = *peer;
      used = 4;
    } else {
      return refuse("must be calc, send, recv, requires or irequires, is " + shortened(what));
    }
    if (read_options(node, words, at + used)) keep(label, node);
  }

  bool read_options(TraceNode& node, const std::vector<std::string_view>& words, std::size_t at) {
    for (; at < words.size(); at += 2) {
      const auto number =
          at + 1 < words.size() ? number_in<std::int32_t>(words[at + 1]) : std::nullopt;
      if (words[at] == "tag" && number) {
        node.tag = *number;
      } else if (words[at] == "cpu" && number && *number >= 0) {
        if (node.kind == TraceNodeKind::kKernel) node.lane = static_cast<std::uint32_t>(*number);
      } else if (words[at] == "nic" && number) {
        ignores_nic_ = true;
      } else {
        refuse("must be tag, cpu or nic and a number, is " + shortened(words[at]));
        return false;
      }
    }
    return true;
  }

  void keep(const std::string& label, const TraceNode& node) {
    RankDraft& rank = draft();
    const auto number = static_cast<std::uint32_t>(rank.nodes.size());
    if (!label.empty() && !rank.labels.emplace(label, number).second) {
      return refuse("label " + shortened(label) + " stands twice");
    }
    rank.nodes.push_back(node);
    rank.after.emplace_back();
  }

  TraceRank finish(RankDraft& draft) {
    for (const auto& [after, before] : draft.after_start) {
      const std::vector<std::uint32_t> starts = draft.after[before];
      started_ += starts.size();
      if (started_ > kMostStarts) {
        refuse("has more than 10 million dependencies by irequires");
        return {};
      }
      draft.after[after].insert(draft.after[after].end(), starts.begin(), starts.end());
    }
    TraceRank rank;
    for (std::size_t i = 0; i < draft.nodes.size(); ++i) rank.add(draft.nodes[i], draft.after[i]);
    return rank;
  }

  const std::string path_;
  std::vector<Problem>& problems_;
  GoalJob read_;
  std::vector<RankDraft> drafts_;
  std::optional<std::uint32_t> rank_;
  std::size_t line_ = 0;
  std::size_t started_ = 0;  // dependencies that irequires has made
  bool has_ranks_ = false;
  bool ignores_nic_ = false;
};

}  // namespace

GoalJob read_goal(std::string_view text, const std::string& path, std::vector<Problem>& problems) {
  return GoalReader(path, problems).read(text);
}

std::string goal_text(const TraceJob& job, std::vector<Problem>& problems) {
  std::string text = fmt::format("num_ranks {}\n", job.ranks);
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    const TraceRank& program = job.program_of(rank);
    text += fmt::format("\nrank {} {{\n", rank);
    for (std::size_t i = 0; i < program.nodes.size(); ++i) {
      const TraceNode& node = program.nodes[i];
      if (node.kind == TraceNodeKind::kCollective) {
        problems.push_back({fmt::format("rank {}", rank),
                            "GOAL has no collectives, but node " + std::to_string(i) + " is one"});
        return {};
      }
      if (node.kind == TraceNodeKind::kSend || node.kind == TraceNodeKind::kReceive) {
        const bool is_send = node.kind == TraceNodeKind::kSend;
        text += fmt::format("l{}: {} {}b {} {} tag {}\n", i, is_send ? "send" : "recv",
                            node.bytes.value(), is_send ? "to" : "from", node.peer, node.tag);
      } else {
        // Ops of the processor run on another cpu than kernels.
        const std::uint32_t cpu = node.kind == TraceNodeKind::kKernel ? node.lane.value_or(0) : 1;
        text += fmt::format("l{}: calc {}{}\n", i,
                            (node.time.value_or(Duration()).count() + 999) / 1000,
                            cpu == 0 ? "" : fmt::format(" cpu {}", cpu));
      }
      for (const std::uint32_t before : program.dependencies_of(i)) {
        text += fmt::format("l{} requires l{}\n", i, before);
      }
    }
    text += "}\n";
  }
  return text;
}

}  // namespace stepsim
