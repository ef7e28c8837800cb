#include "schedules/pipeline/torch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostCellProblems = 50;
constexpr std::string_view kOverlap = ")OVERLAP_F_B";

struct TorchOp {
  std::int32_t stage = 0;
  char kind = 'F';
  std::int32_t microbatch = 0;
};

std::optional<std::int32_t> take_count(std::string_view& text, std::int64_t most) {
  std::int32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

// Reads "2F0".
std::optional<TorchOp> torch_op(std::string_view text) {
  constexpr std::int64_t kMostStages = std::int64_t{kMostChunks} << 16;
  const auto stage = take_count(text, kMostStages);
  if (!stage || text.empty() || std::string_view("FBIW").find(text[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  TorchOp op{.stage = *stage, .kind = text[0]};
  text.remove_prefix(1);
  const auto microbatch = take_count(text, kMostMicrobatches);
  if (!microbatch || !text.empty()) return std::nullopt;
  op.microbatch = *microbatch;
  return op;
}

// Reads a cell: one op, or a forward and the backward that it is fused with.
std::vector<TorchOp> torch_ops(std::string_view cell) {
  if (!cell.starts_with('(')) {
    const auto op = torch_op(cell);
    return op ? std::vector{*op} : std::vector<TorchOp>{};
  }
  const std::size_t between = cell.find(';');
  if (!cell.ends_with(kOverlap) || between == std::string_view::npos) return {};
  cell.remove_suffix(kOverlap.size());
  const auto forward = torch_op(cell.substr(1, between - 1));
  const auto backward = torch_op(cell.substr(between + 1));
  if (!forward || !backward || forward->kind != 'F' || backward->kind != 'B') return {};
  return {*forward, *backward};
}

PipelineOpKind kind_of_letter(char letter) {
  return letter == 'F'   ? PipelineOpKind::kForward
         : letter == 'B' ? PipelineOpKind::kBackward
         : letter == 'I' ? PipelineOpKind::kBackwardInput
                         : PipelineOpKind::kBackwardWeight;
}

char letter_of(PipelineOpKind kind) {
  switch (kind) {
    case PipelineOpKind::kForward:
    case PipelineOpKind::kForwardBackward:
      return 'F';
    case PipelineOpKind::kBackward:
      return 'B';
    case PipelineOpKind::kBackwardInput:
      return 'I';
    case PipelineOpKind::kBackwardWeight:
      break;
  }
  return 'W';
}

class TorchOrder {
 public:
  PipelineSchedule read(std::string_view text) {
    std::size_t line = 0;
    for (std::string_view row : split_text(text, '\n')) {
      ++line;
      if (row.ends_with('\r')) row.remove_suffix(1);
      if (!row.empty()) read_rank(row, line);
    }
    throw_if_any(problems_);
    place();
    throw_if_any(std::move(problems_));
    return std::move(schedule_);
  }

 private:
  void read_rank(std::string_view row, std::size_t line) {
    std::vector<std::vector<TorchOp>>& rank = cells_.emplace_back();
    for (std::string_view cell : split_text(row, ',')) {
      while (cell.starts_with(' ')) cell.remove_prefix(1);
      while (cell.ends_with(' ')) cell.remove_suffix(1);
      if (cell.empty()) continue;
      rank.push_back(torch_ops(cell));
      if (!rank.back().empty() || problems_.size() >= kMostCellProblems) continue;
      problems_.push_back(
          {fmt::format("line {}", line),
           fmt::format("\"{}\" is no op: must be like 0F3, 0B3, 0I3, 0W3 or (0F5;2B1)OVERLAP_F_B "
                       "(stage, op, micro-batch)",
                       shortened(cell))});
    }
  }

  // Stages lie in a loop unless one of them can't, and then in a V.
  void place() {
    schedule_.ranks.resize(cells_.size());
    if (!lies_in(Placement::kLoop) && !lies_in(Placement::kV)) {
      problems_.push_back({"schedule", fmt::format("has stages on {} ranks that lie neither in a "
                                                   "loop nor in a V",
                                                   cells_.size())});
      return;
    }
    const auto ranks = static_cast<std::int32_t>(cells_.size());
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      for (const std::vector<TorchOp>& cell : cells_[rank]) add(rank, ranks, cell);
    }
    if (std::int64_t{ranks} * schedule_.microbatches * schedule_.chunks > kMostForwards) {
      problems_.push_back({"schedule", fmt::format("has more than {} forwards", kMostForwards)});
    }
  }

  bool lies_in(Placement placement) {
    schedule_.placement = placement;
    const std::int32_t ranks = schedule_.size();
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      for (const std::vector<TorchOp>& cell : cells_[static_cast<std::size_t>(rank)]) {
        for (const TorchOp& op : cell) {
          const std::int32_t chunk = op.stage / ranks;
          if (chunk >= kMostChunks || stage_of(schedule_, rank, chunk) != op.stage) return false;
        }
      }
    }
    return true;
  }

  void add(std::size_t rank, std::int32_t ranks, const std::vector<TorchOp>& cell) {
    PipelineOp op{kind_of_letter(cell[0].kind), cell[0].microbatch, cell[0].stage / ranks};
    if (cell.size() > 1) {
      op.kind = PipelineOpKind::kForwardBackward;
      op.backward_microbatch = cell[1].microbatch;
      op.backward_chunk = cell[1].stage / ranks;
    }
    schedule_.ranks[rank].push_back(op);
    for (const TorchOp& each : cell) {
      schedule_.microbatches = std::max(schedule_.microbatches, each.microbatch + 1);
      schedule_.chunks = std::max(schedule_.chunks, each.stage / ranks + 1);
    }
  }

  std::vector<std::vector<std::vector<TorchOp>>> cells_;  // by rank
  PipelineSchedule schedule_;
  std::vector<Problem> problems_;
};

}  // namespace

bool is_torch_order(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n,");
  return begin != std::string_view::npos &&
         (text[begin] == '(' || (text[begin] >= '0' && text[begin] <= '9'));
}

PipelineSchedule parse_torch_order(std::string_view text) {
  return TorchOrder().read(text);
}

std::string write_torch_order(const PipelineSchedule& schedule) {
  if (schedule.placement == Placement::kBidirectional) {
    throw ConfigError({Problem{"schedule",
                               "runs in two directions, with two copies of each stage, "
                               "which PyTorch's orders don't have"}});
  }
  std::string text;
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    std::string line;
    for (const PipelineOp& op : schedule.ranks[static_cast<std::size_t>(rank)]) {
      const std::string first = fmt::format("{}{}{}", stage_of(schedule, rank, op.chunk),
                                            letter_of(op.kind), op.microbatch);
      if (!line.empty()) line += ',';
      line += op.kind != PipelineOpKind::kForwardBackward
                  ? first
                  : fmt::format("({};{}B{}{}", first, stage_of(schedule, rank, op.backward_chunk),
                                op.backward_microbatch, kOverlap);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace stepsim
