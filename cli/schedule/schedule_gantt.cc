#include "cli/schedule/schedule_gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kShownRanks = 32;
constexpr std::int64_t kMostColumnsAUnit = 4;
constexpr std::int64_t kMostPanels = 4;

// Scale maps times to columns. A chart that is too wide is cut into panels, one below the other.
struct Scale {
  std::int64_t unit = 1;     // of time
  std::int64_t columns = 1;  // per unit
  std::size_t panels = 1;
  bool shows_every_op = true;  // no op is shorter than a column

  std::size_t column(std::int64_t time) const {
    return static_cast<std::size_t>(time / unit * columns);
  }
};

std::int64_t rounded_up(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

std::int64_t shortest_op(const PipelineSchedule& schedule, const StageCosts& costs) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    for (const PipelineOp& op : schedule.ranks[static_cast<std::size_t>(rank)]) {
      shortest = std::min(shortest, time_of(schedule, rank, op, costs));
    }
  }
  return shortest;
}

// Chooses the fewest panels that show every op. If that takes too many, it chooses one panel, in
// which ops are missing.
Scale scale_of(std::int64_t unit, std::int64_t shortest, std::int64_t makespan, std::size_t width) {
  const auto room = static_cast<std::int64_t>(width);
  if (makespan / unit <= room) {
    return {.unit = unit,
            .columns = std::clamp<std::int64_t>(room / (makespan / unit), 1, kMostColumnsAUnit)};
  }
  for (std::int64_t panels = 1; panels <= kMostPanels; ++panels) {
    const std::int64_t coarse = rounded_up(makespan, panels * room);
    if (coarse > shortest) continue;
    const bool is_exact = makespan / unit <= panels * room;
    return {.unit = is_exact ? unit : coarse, .panels = static_cast<std::size_t>(panels)};
  }
  return {.unit = rounded_up(makespan, room), .shows_every_op = false};
}

struct Cell {
  char letter = '.';
  std::optional<PipelineOpKind> kind{};  // unset: idle
};

std::string letters_of(const PipelineOp& op) {
  const std::string text = to_text(op);
  std::string letters = text.substr(0, text.find_first_of("0123456789"));
  if (op.chunk % 2 == 1) {
    for (char& letter : letters) letter = static_cast<char>(letter - 'A' + 'a');
  }
  return letters;
}

// Returns the letters of an op and its micro-batch, cut only so far that they do not mislead.
std::string label_of(const PipelineOp& op, std::size_t width) {
  const std::string letters = letters_of(op);
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

// RanOp is an op of a rank and the time when it runs.
struct RanOp {
  const PipelineOp& op;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// Draws every op with its label.
void draw_all(const std::vector<RanOp>& ops, const Scale& scale, std::vector<Cell>& row) {
  for (const RanOp& ran : ops) {
    const std::size_t begin = scale.column(ran.start);
    const std::string label = label_of(ran.op, scale.column(ran.end) - begin);
    for (std::size_t i = 0; i < label.size(); ++i) row[begin + i] = {label[i], ran.op.kind};
  }
}

// Draws in each column the op that takes most of it, or idle time.
void draw_most(const std::vector<RanOp>& ops, const Scale& scale, std::vector<Cell>& row) {
  std::vector<std::int64_t> most(row.size(), 0);
  std::vector<std::int64_t> idle(row.size(), scale.unit);
  for (const RanOp& ran : ops) {
    const std::size_t last = std::min(row.size() - 1, scale.column(ran.end));
    for (std::size_t column = scale.column(ran.start); column <= last; ++column) {
      const auto begin = static_cast<std::int64_t>(column) * scale.unit;
      const std::int64_t time = std::min(ran.end, begin + scale.unit) - std::max(ran.start, begin);
      idle[column] -= time;
      if (time <= most[column]) continue;
      most[column] = time;
      row[column] = {letters_of(ran.op).front(), ran.op.kind};
    }
  }
  for (std::size_t column = 0; column < row.size(); ++column) {
    if (idle[column] > most[column]) row[column] = {};
  }
}

std::vector<Cell> row_of(const PipelineSchedule& schedule, const StageCosts& costs,
                         const PipelineReplay& replayed, std::size_t rank, const Scale& scale) {
  std::vector<RanOp> ops;
  for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const PipelineOp& op = schedule.ranks[rank][i];
    const std::int64_t start = replayed.starts[rank][i];
    const std::int64_t time = time_of(schedule, static_cast<std::int32_t>(rank), op, costs);
    ops.push_back({op, start, start + time});
  }
  // A column in which the step only just begins its end is not drawn, unless a column holds many
  // ops.
  const std::size_t columns = scale.column(replayed.makespan);
  std::vector<Cell> row(std::max<std::size_t>(columns, 1));
  (scale.shows_every_op ? draw_all : draw_most)(ops, scale, row);
  return row;
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

// Returns the cells as text. Neighbours of one kind are painted together.
std::string painted_cells(std::span<const Cell> cells, bool color) {
  std::string line;
  for (std::size_t begin = 0; begin < cells.size();) {
    std::size_t end = begin;
    std::string text;
    for (; end < cells.size() && cells[end].kind == cells[begin].kind; ++end) {
      text += cells[end].letter;
    }
    line += cells[begin].kind ? painted(text, paint_of(*cells[begin].kind), color) : text;
    begin = end;
  }
  return line;
}

std::string scale_text(const Scale& scale) {
  if (scale.columns > 1) {
    return fmt::format("  {} columns are {}", scale.columns, to_text(Duration(scale.unit)));
  }
  return fmt::format("  a column is {}{}", to_text(Duration(scale.unit)),
                     scale.shows_every_op ? "" : " and shows the op that takes most of it");
}

}  // namespace

std::vector<std::string> gantt_lines(const PipelineSchedule& schedule, const StageCosts& costs,
                                     const PipelineReplay& replayed, bool color) {
  const std::size_t ranks = schedule.ranks.size();
  const std::size_t digits = std::to_string(ranks - 1).size();
  const std::string_view margin = "  rank ";
  const std::size_t width = kReportWidth - margin.size() - digits - 2;
  const Scale scale =
      scale_of(unit_of(costs), shortest_op(schedule, costs), replayed.makespan, width);
  std::vector<std::string> lines;
  for (std::size_t panel = 0; panel < scale.panels; ++panel) {
    const std::size_t first = panel * width;
    if (panel > 0) {
      const auto from = static_cast<std::int64_t>(first) * scale.unit;
      lines.push_back(fmt::format("  from {} on", to_text(Duration(from))));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (ranks > kShownRanks && rank == kShownRanks / 2) {
        lines.emplace_back("  ...");
        rank = ranks - kShownRanks / 2;
      }
      const std::vector<Cell> row = row_of(schedule, costs, replayed, rank, scale);
      const std::size_t begin = std::min(first, row.size());
      const std::size_t count =
          scale.panels == 1 ? row.size() : std::min(width, row.size() - begin);
      lines.push_back(fmt::format("{}{:>{}}  {}", margin, rank, digits,
                                  painted_cells(std::span(row).subspan(begin, count), color)));
    }
  }
  lines.push_back(scale_text(scale));
  return lines;
}

}  // namespace stepsim
