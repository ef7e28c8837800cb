#include "cli/schedule/schedule_gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "traces/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kShownRanks = 32;
constexpr std::int64_t kMostColumnsAUnit = 4;

// The column of a time: time / unit * columns.
struct Scale {
  std::int64_t unit = 1;
  std::int64_t columns = 1;

  std::size_t column(std::int64_t time) const {
    return static_cast<std::size_t>(time / unit * columns);
  }
};

Scale scale_of(const StageCosts& costs, std::int64_t makespan, std::size_t width) {
  const auto room = static_cast<std::int64_t>(width);
  const std::int64_t unit = unit_of(costs);
  if (makespan / unit <= room) {
    return {unit, std::clamp<std::int64_t>(room / (makespan / unit), 1, kMostColumnsAUnit)};
  }
  return {makespan / room + (makespan % room == 0 ? 0 : 1), 1};
}

// The letters of an op and its micro-batch, as much of it as is not misleading.
std::string cell(const PipelineOp& op, std::size_t width) {
  const std::string text = to_text(op);
  std::string letters = text.substr(0, text.find_first_of("0123456789"));
  if (op.chunk % 2 == 1) {
    for (char& letter : letters) letter = static_cast<char>(letter - 'A' + 'a');
  }
  const std::string number = std::to_string(op.microbatch);
  const std::string both = number + (op.kind == PipelineOpKind::kForwardBackward
                                         ? "/" + std::to_string(op.backward_microbatch)
                                         : "");
  std::string shown = letters.substr(0, width);
  if (letters.size() + both.size() <= width) {
    shown = letters + both;
  } else if (letters.size() + number.size() <= width) {
    shown = letters + number;
  }
  return shown + std::string(width - shown.size(), '-');
}

Paint paint_of(PipelineOpKind kind) {
  switch (kind) {
    case PipelineOpKind::kForward:
      return Paint::kBar;
    case PipelineOpKind::kBackward:
    case PipelineOpKind::kBackwardInput:
      return Paint::kGood;
    case PipelineOpKind::kBackwardWeight:
      return Paint::kDim;
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return Paint::kBold;
}

}  // namespace

std::vector<std::string> gantt_lines(const PipelineSchedule& schedule, const StageCosts& costs,
                                     const PipelineReplay& replayed, bool color) {
  const std::size_t ranks = schedule.ranks.size();
  const std::size_t digits = std::to_string(ranks - 1).size();
  const std::string_view margin = "  rank ";
  const std::size_t width = kReportWidth - margin.size() - digits - 2;
  const Scale scale = scale_of(costs, replayed.makespan, width);
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > kShownRanks && rank == kShownRanks / 2) {
      lines.emplace_back("  ...");
      rank = ranks - kShownRanks / 2;
    }
    std::string line = fmt::format("{}{:>{}}  ", margin, rank, digits);
    std::size_t column = 0;
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const PipelineOp& op = schedule.ranks[rank][i];
      const std::int64_t start = replayed.starts[rank][i];
      const std::size_t begin = scale.column(start);
      const std::int64_t time = time_of(schedule, static_cast<std::int32_t>(rank), op, costs);
      const std::size_t end = scale.column(start + time);
      if (begin > column) line += std::string(begin - column, '.');
      column = std::max(begin, column);
      if (end <= column) continue;
      line += painted(cell(op, end - column), paint_of(op.kind), color);
      column = end;
    }
    const std::size_t last = scale.column(replayed.makespan);
    if (last > column) line += std::string(last - column, '.');
    lines.push_back(std::move(line));
  }
  lines.push_back(fmt::format(
      "  {} {}", scale.columns == 1 ? "a column is" : fmt::format("{} columns are", scale.columns),
      to_text(Duration(scale.unit))));
  return lines;
}

}  // namespace stepsim
