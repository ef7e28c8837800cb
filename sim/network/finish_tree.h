// FinishTree keeps an instant for each of n links and knows the earliest one: a tournament in
// which sixteen play in each match.
//
//   tree.set(link, instant);   // any number of them
//   tree.clear(link);          // the link has no instant any more
//   tree.flush();              // plays the matches again that can have another winner
//   tree.earliest();           // nothing if no link has an instant
//   tree.collect(links);       // all links with that instant, in order of number
//
// set() and clear() are O(1); flush() looks at sixteen numbers a changed group and level (three
// levels for 4,096 links), once for all links of the group that changed. No allocation after
// construction.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace stepsim {

class FinishTree {
 public:
  explicit FinishTree(std::size_t links) {
    std::size_t size = links;
    do {
      const std::size_t groups = (size + kWay - 1) / kWay;
      levels_.push_back({std::vector<std::int64_t>(std::max<std::size_t>(groups, 1) * kWay, kNever),
                         std::vector<std::uint8_t>(groups, 0),
                         {}});
      levels_.back().changed_groups.reserve(groups);
      size = groups;
    } while (size > 1);
  }

  // REQUIRES: the instant is not the last one that the type can hold.
  void set(std::uint32_t link, std::int64_t instant) { set_at(levels_.front(), link, instant); }
  void clear(std::uint32_t link) { set(link, kNever); }

  void flush() {
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      Level& level = levels_[depth];
      for (const std::uint32_t group : level.changed_groups) {
        level.is_changed[group] = 0;
        const std::int64_t winner = earliest_of(level, group);
        if (depth + 1 < levels_.size()) {
          set_at(levels_[depth + 1], group, winner);
        } else {
          earliest_ = winner;
        }
      }
      level.changed_groups.clear();
    }
  }

  // Returns the earliest instant as of the last flush().
  std::optional<std::int64_t> earliest() const {
    return earliest_ == kNever ? std::nullopt : std::optional(earliest_);
  }

  // Appends the links whose instant is earliest(). REQUIRES: no set() since the last flush().
  void collect(std::vector<std::uint32_t>& links) const {
    if (earliest_ != kNever) collect_group(levels_.size() - 1, 0, links);
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint32_t kWay = 16;

  struct Level {
    std::vector<std::int64_t> instants;  // of the links, or the winners of the level below
    std::vector<std::uint8_t> is_changed;
    std::vector<std::uint32_t> changed_groups;
  };

  static void set_at(Level& level, std::uint32_t position, std::int64_t instant) {
    if (level.instants[position] == instant) return;
    level.instants[position] = instant;
    const std::uint32_t group = position / kWay;
    if (level.is_changed[group] == 0) {
      level.is_changed[group] = 1;
      level.changed_groups.push_back(group);
    }
  }

  static std::int64_t earliest_of(const Level& level, std::uint32_t group) {
    const std::int64_t* instants = level.instants.data() + std::size_t{group} * kWay;
    std::array<std::int64_t, 4> least{instants[0], instants[1], instants[2], instants[3]};
    for (std::size_t i = 4; i < kWay; i += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) {
        least[lane] = std::min(least[lane], instants[i + lane]);
      }
    }
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }

  void collect_group(std::size_t depth, std::uint32_t group,
                     std::vector<std::uint32_t>& links) const {
    for (std::uint32_t way = 0; way < kWay; ++way) {
      const std::uint32_t position = group * kWay + way;
      if (levels_[depth].instants[position] != earliest_) continue;
      if (depth == 0) {
        links.push_back(position);
      } else {
        collect_group(depth - 1, position, links);
      }
    }
  }

  std::vector<Level> levels_;  // links first, the final match last
  std::int64_t earliest_ = kNever;
};

}  // namespace stepsim
