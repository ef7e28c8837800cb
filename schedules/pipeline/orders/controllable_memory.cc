#include "schedules/pipeline/orders/controllable_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <compare>
#include <optional>
#include <vector>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

// Op types in the order of a micro-batch's life. The number breaks ties between slots.
enum Type : std::int32_t { kDown = 0, kUp = 1, kBackDown = 2, kBackUp = 3, kWeight = 4 };
constexpr std::int32_t kTypes = 4;  // without weights
constexpr std::int32_t kPeriod = 6;

struct Pattern {
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  std::int32_t half_delay = 0;  // the pattern's d
  bool is_min = false;

  // Returns the slot of micro-batch 0's op of this type.
  std::int32_t slot(Type type, std::int32_t rank) const {
    const std::int32_t p = stages;
    const std::int32_t d = half_delay;
    if (is_min) {
      const std::array<std::int32_t, kTypes> slots = {rank, 2 * p - 1 - rank, 2 * p + d + rank,
                                                      4 * p + d - 1 - rank};
      return slots[static_cast<std::size_t>(type)];
    }
    const std::array<std::int32_t, kTypes> slots = {2 * rank, 3 * p - 2 - rank,
                                                    3 * p + d - 1 + 2 * rank, 6 * p + d - 2 - rank};
    return slots[static_cast<std::size_t>(type)];
  }
};

struct Element {
  std::int32_t slot = 0;
  std::int32_t rank = 0;
  Type type = kDown;
  std::int32_t microbatch = 0;  // for a weight gradient: its number on the rank
  friend auto operator<=>(const Element&, const Element&) = default;
};

// Cell is the op in a slot of a rank.
enum class Cell : std::uint8_t { kEmpty, kForward, kBackward, kWeight };

// Grid holds the slots of all ops. It has weight gradients only between place_weights() and
// drop_weights().
class Grid {
 public:
  explicit Grid(const Pattern& pattern)
      : stages_(pattern.stages),
        microbatches_(pattern.microbatches),
        slots_(static_cast<std::size_t>(kTypes * stages_ * microbatches_)),
        weights_(static_cast<std::size_t>(stages_)) {
    for (std::int32_t type = 0; type < kTypes; ++type) {
      for (std::int32_t rank = 0; rank < stages_; ++rank) {
        for (std::int32_t i = 0; i < microbatches_; ++i) {
          const auto kind = static_cast<Type>(type);
          slot(kind, rank, i) = pattern.slot(kind, rank) + kPeriod * i;
        }
      }
    }
  }

  std::int32_t& slot(Type type, std::int32_t rank, std::int32_t i) {
    if (type == kWeight) return weights_[at(rank)][at(i)];
    return slots_[at((type * stages_ + rank) * microbatches_ + i)];
  }

  void place_weights() {
    for (std::int32_t rank = 0; rank < stages_; ++rank) {
      std::int32_t pending = 0;
      const std::vector<Cell> cells = row(rank);
      auto end = static_cast<std::int32_t>(cells.size());
      for (std::int32_t s = 0; s < end; ++s) {
        if (cells[at(s)] == Cell::kBackward) ++pending;
        if (cells[at(s)] == Cell::kEmpty && pending > 0) {
          weights_[at(rank)].push_back(s);
          --pending;
        }
      }
      for (; pending > 0; --pending) weights_[at(rank)].push_back(end++);
    }
  }
  void drop_weights() {
    for (std::vector<std::int32_t>& weights : weights_) weights.clear();
  }

  std::vector<Element> elements() {
    std::vector<Element> elements;
    for (std::int32_t rank = 0; rank < stages_; ++rank) {
      for (std::int32_t type = 0; type <= kTypes; ++type) {
        const auto kind = static_cast<Type>(type);
        const std::int32_t count =
            kind == kWeight ? static_cast<std::int32_t>(weights_[at(rank)].size()) : microbatches_;
        for (std::int32_t i = 0; i < count; ++i) {
          elements.push_back({slot(kind, rank, i), rank, kind, i});
        }
      }
    }
    std::ranges::sort(elements);
    return elements;
  }

  // Returns the rank's cells up to the last slot in use.
  std::vector<Cell> row(std::int32_t rank) {
    std::vector<Cell> cells;
    const auto put = [&](std::int32_t s, Cell cell) {
      if (at(s) >= cells.size()) cells.resize(at(s) + 1, Cell::kEmpty);
      cells[at(s)] = cell;
    };
    for (std::int32_t type = 0; type < kTypes; ++type) {
      for (std::int32_t i = 0; i < microbatches_; ++i) {
        put(slot(static_cast<Type>(type), rank, i),
            type == kDown || type == kUp ? Cell::kForward : Cell::kBackward);
      }
    }
    for (const std::int32_t s : weights_[at(rank)]) put(s, Cell::kWeight);
    return cells;
  }

  // Returns the slot in which the previous rank runs this op; nullopt if that rank is this one.
  std::optional<std::int32_t> upstream(Type type, std::int32_t rank, std::int32_t i) {
    if (type == kDown || type == kBackDown) {
      if (rank > 0) return slot(type, rank - 1, i);
    } else if (type != kWeight && rank + 1 < stages_) {
      return slot(type, rank + 1, i);
    }
    return std::nullopt;
  }

  // Closes all gaps: each op starts when its rank is free and its inputs have ended.
  void squeeze() {
    std::vector<std::int32_t> free_at(at(stages_), 0);
    for (const Element& element : elements()) {
      const auto [old, rank, type, i] = element;
      std::int32_t start = free_at[at(rank)];
      // Slots of earlier ops are already the new ones, because those ops stand in front in
      // `elements`.
      if (const auto before = upstream(type, rank, i)) start = std::max(start, *before + 1);
      if (type >= kUp && type <= kBackUp) {
        start = std::max(start, slot(static_cast<Type>(type - 1), rank, i) + 1);
      }
      slot(type, rank, i) = start;
      free_at[at(rank)] = start + 1;
    }
  }

  std::int32_t stages() const { return stages_; }
  std::int32_t microbatches() const { return microbatches_; }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  std::int32_t stages_;
  std::int32_t microbatches_;
  std::vector<std::int32_t> slots_;                 // indexed by type, rank and micro-batch
  std::vector<std::vector<std::int32_t>> weights_;  // by rank, sorted by slot
};

// Returns the most chunks in flight. If the row has no weight gradients, each free slot after a
// backward counts as one.
std::int32_t peak(const std::vector<Cell>& row, bool with_weights) {
  std::int32_t in_flight = 0;
  std::int32_t pending = 0;
  std::int32_t most = 0;
  for (const Cell cell : row) {
    if (cell == Cell::kForward) most = std::max(most, ++in_flight);
    if (cell == Cell::kWeight) --in_flight;
    if (with_weights) continue;
    if (cell == Cell::kBackward) ++pending;
    if (cell == Cell::kEmpty && pending > 0) {
      --pending;
      --in_flight;
    }
  }
  return most;
}

// Moves ops to earlier free slots without raising the memory.
class Compaction {
 public:
  Compaction(Grid& grid, bool with_weights) : grid_(grid), with_weights_(with_weights) {
    for (std::int32_t rank = 0; rank < grid_.stages(); ++rank) {
      rows_.push_back(grid_.row(rank));
      limit_ = std::max(limit_, peak(rows_.back(), with_weights_));
    }
  }

  void run() {
    // The repetition in the middle is kept. It begins with the first backward that leaves rank 0
    // and ends with the last forward that enters.
    enum { kStart, kMiddle, kEnd } phase = kStart;
    for (const Element& element : grid_.elements()) {
      const bool leaves = element.type == kBackUp && element.rank == 0;
      if (phase == kStart && leaves) phase = kMiddle;
      if (phase == kEnd || (phase == kStart && with_weights_)) pull_forward(element);
      const bool enters_last =
          element.type == kDown && element.microbatch == grid_.microbatches() - 1;
      if (phase == kMiddle && enters_last) phase = kEnd;
    }
  }

 private:
  std::int32_t earliest(const Element& element) {
    const auto [old, rank, type, i] = element;
    std::int32_t first = 0;
    const auto after = [&first](std::int32_t slot) { first = std::max(first, slot + 1); };
    if (type == kWeight) {
      after(nth_backward(rank, i));
    } else {
      if (const auto before = grid_.upstream(type, rank, i)) after(*before);
      if (type != kDown) after(grid_.slot(static_cast<Type>(type - 1), rank, i));
    }
    if (i > 0) after(grid_.slot(type, rank, i - 1));
    return first;
  }

  // Returns the slot of a rank's backward. REQUIRES: the rank has more than `number` backwards.
  std::int32_t nth_backward(std::int32_t rank, std::int32_t number) const {
    const std::vector<Cell>& row = rows_[static_cast<std::size_t>(rank)];
    const auto is_wanted = [&](Cell cell) { return cell == Cell::kBackward && number-- == 0; };
    return static_cast<std::int32_t>(std::ranges::find_if(row, is_wanted) - row.begin());
  }

  void pull_forward(const Element& element) {
    std::vector<Cell>& row = rows_[static_cast<std::size_t>(element.rank)];
    const auto from = static_cast<std::size_t>(element.slot);
    for (std::int32_t s = earliest(element); s < element.slot; ++s) {
      const auto to = static_cast<std::size_t>(s);
      if (row[to] != Cell::kEmpty) continue;
      std::swap(row[to], row[from]);
      if (peak(row, with_weights_) <= limit_) {
        grid_.slot(element.type, element.rank, element.microbatch) = s;
        return;
      }
      std::swap(row[to], row[from]);
    }
  }

  Grid& grid_;
  bool with_weights_;
  std::int32_t limit_ = 0;
  std::vector<std::vector<Cell>> rows_;
};

void compact(Grid& grid, bool with_weights) {
  if (with_weights) grid.place_weights();
  Compaction(grid, with_weights).run();
  if (!with_weights) grid.place_weights();
  grid.squeeze();
  grid.drop_weights();
}

// Assigns the last weight gradients to chunks and returns the order in which the ops would run.
PipelineSchedule read_off(Grid& grid) {
  return schedule_by_rank(
      {grid.stages(), grid.microbatches(), 2, Placement::kV}, [&](std::int32_t rank) {
        std::vector<std::optional<PipelineOp>> cells;
        const auto put = [&](std::int32_t s, const PipelineOp& op) {
          const auto index = static_cast<std::size_t>(s);
          if (index >= cells.size()) cells.resize(index + 1);
          cells[index] = op;
        };
        for (std::int32_t i = 0; i < grid.microbatches(); ++i) {
          put(grid.slot(kDown, rank, i), forward_op(i, 0));
          put(grid.slot(kUp, rank, i), forward_op(i, 1));
          put(grid.slot(kBackDown, rank, i), input_op(i, 1));
          put(grid.slot(kBackUp, rank, i), input_op(i, 0));
        }
        RankOrder order;
        std::array<std::int32_t, 2> pending{};
        std::array<std::int32_t, 2> done{};
        const auto weight = [&] {
          const std::size_t chunk = pending[1] > 0 ? 1 : 0;
          --pending[chunk];
          order.push_back(weight_op(done[chunk]++, static_cast<std::int32_t>(chunk)));
        };
        for (const std::optional<PipelineOp>& op : cells) {
          if (op) {
            order.push_back(*op);
            if (op->kind == PipelineOpKind::kBackwardInput) {
              ++pending[static_cast<std::size_t>(op->chunk)];
            }
          } else if (pending[0] + pending[1] > 0) {
            weight();
          }
        }
        while (pending[0] + pending[1] > 0) weight();
        return order;
      });
}

PipelineSchedule from_pattern(const Pattern& pattern) {
  Grid grid(pattern);
  compact(grid, true);
  compact(grid, false);
  return read_off(grid);
}

constexpr const char* kControllableMemory = "Qi et al., arXiv 2405.15362";

// The paper gives V-Half and V-Min a rounded figure for many stages. `rule` times f is the exact
// value.
std::string exact_v(const char* rule, std::int64_t exact) {
  return fmt::format(
      "the figure is for many stages; with f = b = w, free sends and M >= 2 P it is "
      "exactly {} = {} times f",
      rule, exact);
}

}  // namespace

PipelineSchedule v_half(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 1 && microbatches >= 1);
  return from_pattern({.stages = stages,
                       .microbatches = microbatches,
                       .half_delay = stages % 2 == 0 ? 3 : 0,
                       .is_min = false});
}

PipelineSchedule v_min(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 1 && microbatches >= 1);
  return from_pattern({.stages = stages,
                       .microbatches = microbatches,
                       .half_delay = stages % 3 == 0 ? 2 : 0,
                       .is_min = true});
}

BubbleFormula v_half_bubble(const BubbleNumbers& n) {
  const bool is_odd = n.p % 2 != 0;
  const std::string exact = n.p == 2 ? exact_v("1", 1)
                            : is_odd ? exact_v("3 P - 4", 3 * n.p - 4)
                                     : exact_v("3 P - 7", 3 * n.p - 7);
  return BubbleEntry(n, "half of 1F1B's: (P - 1)(f + b + w)", kControllableMemory)
      .value((n.p - 1) * n.all())
      .needs(n.p == 1, exact)
      .take();
}

BubbleFormula v_min_bubble(const BubbleNumbers& n) {
  const std::string exact =
      n.p % 3 == 0 ? exact_v("4 P - 7", 4 * n.p - 7) : exact_v("4 P - 5", 4 * n.p - 5);
  return BubbleEntry(n, "two thirds of 1F1B's: 4/3 (P - 1)(f + b + w)", kControllableMemory)
      .value(4 * (n.p - 1) * n.all(), 3)
      .needs(n.p == 1, exact)
      .take();
}

}  // namespace stepsim
