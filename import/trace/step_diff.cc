#include "import/trace/step_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "import/trace/step_parts.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedOps = 20;
constexpr std::int64_t kMostEdits = 2000;
using Matches = std::vector<std::pair<std::size_t, std::size_t>>;
using Keys = std::vector<std::uint32_t>;

struct Pair {
  std::uint32_t rank = 0;
  std::array<const RankTrace*, 2> traces{};
  std::array<const TraceStep*, 2> steps{};
};

// The ranks that both have; where no number is in both, the first with the first.
std::vector<Pair> pair_ranks(const DeviceTrace& simulated, const DeviceTrace& real) {
  std::map<std::uint32_t, const RankTrace*> by_number;
  for (const RankTrace& rank : real.ranks) {
    if (rank.rank) by_number.emplace(*rank.rank, &rank);
  }
  std::vector<Pair> pairs;
  for (const RankTrace& rank : simulated.ranks) {
    if (!rank.rank) continue;
    const auto found = by_number.find(*rank.rank);
    if (found == by_number.end()) continue;
    pairs.push_back({.rank = *rank.rank, .traces = {&rank, found->second}});
    by_number.erase(found);
  }
  if (!pairs.empty()) return pairs;
  const std::size_t count = std::min(simulated.ranks.size(), real.ranks.size());
  for (std::size_t i = 0; i < count; ++i) {
    pairs.push_back(
        {.rank = static_cast<std::uint32_t>(i), .traces = {&simulated.ranks[i], &real.ranks[i]}});
  }
  return pairs;
}

void choose_steps(std::vector<Pair>& pairs, const StepDiffOptions& options,
                  std::vector<Problem>& problems) {
  static constexpr std::array<const char*, 2> kFields = {"--simulated-step", "--real-step"};
  for (std::size_t side = 0; side < 2; ++side) {
    const std::size_t usual = usual_step(pairs[0].traces[side]->steps);
    const std::size_t step = options.steps[side].value_or(static_cast<std::uint32_t>(usual));
    for (Pair& pair : pairs) {
      const std::vector<TraceStep>& steps = pair.traces[side]->steps;
      if (options.steps[side] && step >= steps.size()) {
        problems.push_back(
            {kFields[side], fmt::format("must be below {}, the number of steps of rank "
                                        "{}, is {}",
                                        steps.size(), pair.rank, step)});
        return;
      }
      pair.steps[side] = &steps[std::min(step, steps.size() - 1)];
    }
  }
}

// ---- kinds ----

// Means over ranks, in picoseconds, that add up to the mean of the whole.
std::vector<Duration> means(const std::vector<std::int64_t>& nanoseconds, Duration whole,
                            std::int64_t ranks) {
  std::vector<Duration> result;
  Duration sum{};
  for (const std::int64_t part : nanoseconds) {
    result.push_back(Duration(1000) * part / ranks);
    sum += result.back();
  }
  if (!result.empty()) *std::ranges::max_element(result) += whole - sum;
  return result;
}

std::string kind_text(SliceKind kind, bool tells_waits) {
  std::string text(name_of(kind));
  if (communicates(kind) && !tells_waits) text += " (wait + transfer)";
  return text;
}

void add_kinds(const std::vector<Pair>& pairs, StepDiff& diff) {
  const auto ranks = static_cast<std::int64_t>(pairs.size());
  std::array<std::vector<Duration>, 2> times;
  std::array<std::array<std::uint64_t, kSliceKinds>, 2> counts{};
  for (std::size_t side = 0; side < 2; ++side) {
    std::vector<std::int64_t> sums(kSliceKinds, 0);
    std::int64_t whole = 0;
    for (const Pair& pair : pairs) {
      const StepParts parts = parts_of(*pair.traces[side], *pair.steps[side], diff.tells_waits);
      whole += pair.steps[side]->end - pair.steps[side]->begin;
      for (std::size_t kind = 0; kind < kSliceKinds; ++kind) {
        sums[kind] += parts.nanoseconds[kind];
        counts[side][kind] += parts.counts[kind];
      }
    }
    diff.step[side] = Duration(1000) * whole / ranks;
    diff.step_name[side] = pairs[0].steps[side]->name;
    times[side] = means(sums, diff.step[side], ranks);
  }
  for (std::size_t kind = 0; kind < kSliceKinds; ++kind) {
    const auto slice_kind = static_cast<SliceKind>(kind);
    const bool is_always = slice_kind == SliceKind::kIdle || slice_kind == SliceKind::kWaiting;
    const bool is_there = counts[0][kind] + counts[1][kind] > 0 || times[0][kind] > Duration() ||
                          times[1][kind] > Duration();
    if (!is_always && !is_there) continue;
    diff.by_kind.push_back({.kind = kind_text(slice_kind, diff.tells_waits),
                            .count = {counts[0][kind], counts[1][kind]},
                            .time = {times[0][kind], times[1][kind]}});
  }
  const auto size = [](const KindDifference& kind) {
    return std::max(kind.difference(), Duration() - kind.difference());
  };
  std::ranges::stable_sort(diff.by_kind, [&](const KindDifference& a, const KindDifference& b) {
    return size(a) > size(b);
  });
}

// ---- ops ----

// The n-th of a key with the n-th.
Matches match_in_order(const Keys& a, const Keys& b) {
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = b.size(); i > 0; --i) places[b[i - 1]].push_back(i - 1);
  Matches matches;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = places.find(a[i]);
    if (found == places.end() || found->second.empty()) continue;
    matches.emplace_back(i, found->second.back());
    found->second.pop_back();
  }
  return matches;
}

// The longest common subsequence (Myers 1986, O((n + m) d)). nullopt if there are too many edits.
std::optional<Matches> match_longest(const Keys& a, const Keys& b) {
  const auto n = static_cast<std::int64_t>(a.size());
  const auto m = static_cast<std::int64_t>(b.size());
  const std::int64_t most = std::min(n + m, kMostEdits);
  std::vector<std::vector<std::int64_t>> history;  // furthest x on each diagonal, by edits
  std::vector<std::int64_t> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  const auto at = [&](std::int64_t diagonal) -> std::int64_t& {
    return furthest[static_cast<std::size_t>(diagonal + most + 1)];
  };
  for (std::int64_t edits = 0; edits <= most; ++edits) {
    history.emplace_back(furthest.begin() + (most + 1 - edits),
                         furthest.begin() + (most + 2 + edits));
    for (std::int64_t diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const bool is_down =
          diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1));
      std::int64_t x = is_down ? at(diagonal + 1) : at(diagonal - 1) + 1;
      std::int64_t y = x - diagonal;
      while (x < n && y < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)]) {
        ++x;
        ++y;
      }
      at(diagonal) = x;
      if (x < n || y < m) continue;
      // Walk back.
      Matches matches;
      x = n;
      y = m;
      for (std::int64_t left = edits; left >= 0; --left) {
        const std::vector<std::int64_t>& then = history[static_cast<std::size_t>(left)];
        const auto was = [&](std::int64_t on) { return then[static_cast<std::size_t>(on + left)]; };
        const std::int64_t here = x - y;
        std::int64_t before_x = 0;
        std::int64_t before_y = 0;
        if (left > 0) {
          const bool down = here == -left || (here != left && was(here - 1) < was(here + 1));
          const std::int64_t from = down ? here + 1 : here - 1;
          before_x = was(from);
          before_y = before_x - from;
        }
        const std::int64_t start_x =
            left == 0 ? 0 : (x - y > before_x - before_y ? before_x + 1 : before_x);
        while (x > start_x && y > start_x - here) {
          --x;
          --y;
          matches.emplace_back(static_cast<std::size_t>(x), static_cast<std::size_t>(y));
        }
        x = before_x;
        y = before_y;
      }
      std::ranges::reverse(matches);
      return matches;
    }
  }
  return std::nullopt;
}

Matches match_keys(const Keys& a, const Keys& b) {
  if (const auto matches = match_longest(a, b)) return *matches;
  return match_in_order(a, b);
}

// Numbers the names of both traces, so that equal ones are equal.
class NameKeys {
 public:
  NameKeys(const DeviceTrace& simulated, const DeviceTrace& real) {
    std::unordered_map<std::string, std::uint32_t> numbers;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const std::string& name : (side == 0 ? simulated : real).names) {
        const auto next = static_cast<std::uint32_t>(numbers.size());
        keys_[side].push_back(numbers.try_emplace(name, next).first->second);
      }
    }
  }
  std::uint32_t key(std::size_t side, const TraceSlice& slice) const {
    return keys_[side][slice.name];
  }

 private:
  std::array<std::vector<std::uint32_t>, 2> keys_;
};

using Slices = std::array<std::vector<const TraceSlice*>, 2>;

Slices slices_of(const Pair& pair, bool communication) {
  Slices slices;
  for (std::size_t side = 0; side < 2; ++side) {
    for (const TraceSlice* slice : slices_in(*pair.traces[side], *pair.steps[side])) {
      if (communicates(slice->kind) == communication) slices[side].push_back(slice);
    }
  }
  return slices;
}

// Whether at least half of the ops of each side have a name that the other side has, too.
bool share_names(const std::vector<Pair>& pairs, const NameKeys& names) {
  std::array<std::unordered_set<std::uint32_t>, 2> known;
  std::array<std::vector<std::uint32_t>, 2> all;
  for (const Pair& pair : pairs) {
    for (std::size_t side = 0; side < 2; ++side) {
      for (const TraceSlice* slice : slices_in(*pair.traces[side], *pair.steps[side])) {
        known[side].insert(names.key(side, *slice));
        all[side].push_back(names.key(side, *slice));
      }
    }
  }
  for (std::size_t side = 0; side < 2; ++side) {
    const auto shared = std::ranges::count_if(
        all[side], [&](std::uint32_t key) { return known[1 - side].contains(key); });
    if (2 * static_cast<std::size_t>(shared) < all[side].size()) return false;
  }
  return true;
}

// Returns the shares of the ops of both sides whose layer is told.
std::array<double, 2> shares_with_layer(const std::vector<Pair>& pairs) {
  std::array<double, 2> shares{};
  for (std::size_t side = 0; side < 2; ++side) {
    std::size_t all = 0;
    std::size_t told = 0;
    for (const Pair& pair : pairs) {
      for (const TraceSlice* slice : slices_in(*pair.traces[side], *pair.steps[side])) {
        ++all;
        told += slice->layer >= 0 ? 1 : 0;
      }
    }
    shares[side] = all == 0 ? 0 : static_cast<double>(told) / static_cast<double>(all);
  }
  return shares;
}

class OpMatcher {
 public:
  OpMatcher(const DeviceTrace& simulated, const DeviceTrace& real, StepDiff& diff)
      : traces_{&simulated, &real}, names_(simulated, real), diff_(diff) {}

  void match(const std::vector<Pair>& pairs) {
    diff_.by_name = share_names(pairs, names_);
    diff_.with_layer = shares_with_layer(pairs);
    diff_.by_layer = std::ranges::min(diff_.with_layer) >= 0.5;
    for (const Pair& pair : pairs) {
      for (const bool communication : {false, true}) {
        match_class(pair, slices_of(pair, communication));
      }
    }
    const std::uint64_t all =
        2 * diff_.matched + diff_.unmatched_count[0] + diff_.unmatched_count[1];
    diff_.score = all == 0 ? 1 : 2 * static_cast<double>(diff_.matched) / static_cast<double>(all);
    keep_largest(diff_.ops, [](const OpDifference& op) { return std::abs(op.difference()); });
    keep_largest(diff_.unmatched,
                 [](const OpDifference& op) { return op.nanoseconds[0] + op.nanoseconds[1]; });
  }

 private:
  template <class Size>
  static void keep_largest(std::vector<OpDifference>& ops, Size size) {
    std::ranges::stable_sort(
        ops, [&](const OpDifference& a, const OpDifference& b) { return size(a) > size(b); });
    if (ops.size() > kListedOps) ops.resize(kListedOps);
  }

  // What must be equal of two ops that match, as a number.
  Keys keys_of(std::size_t side, const std::vector<const TraceSlice*>& slices) {
    Keys keys;
    for (const TraceSlice* slice : slices) {
      const std::uint32_t name =
          diff_.by_name ? names_.key(side, *slice) : static_cast<std::uint32_t>(slice->kind);
      const bool has_place = diff_.by_layer && slice->layer >= 0;
      const std::int32_t layer = has_place ? slice->layer : -1;
      const SliceDirection direction = has_place ? slice->direction : SliceDirection::kUnknown;
      const auto next = static_cast<std::uint32_t>(keys_.size());
      keys.push_back(keys_.try_emplace({name, layer, direction}, next).first->second);
    }
    return keys;
  }

  void set(OpDifference& op, std::size_t side, const TraceSlice& slice) const {
    op.kind = slice.kind;
    if (op.layer < 0) op.layer = slice.layer;
    if (op.direction == SliceDirection::kUnknown) op.direction = slice.direction;
    op.name[side] = traces_[side]->names[slice.name];
    op.nanoseconds[side] = slice.end - (diff_.tells_waits ? slice.moving : slice.start);
  }

  void match_class(const Pair& pair, const Slices& slices) {
    const Matches matches = match_keys(keys_of(0, slices[0]), keys_of(1, slices[1]));
    std::array<std::vector<bool>, 2> is_matched;
    for (std::size_t side = 0; side < 2; ++side) is_matched[side].resize(slices[side].size());
    for (const auto& [first, second] : matches) {
      is_matched[0][first] = true;
      is_matched[1][second] = true;
      ++diff_.matched;
      OpDifference op{.rank = pair.rank};
      set(op, 0, *slices[0][first]);
      set(op, 1, *slices[1][second]);
      if (op.difference() != 0) diff_.ops.push_back(op);
    }
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < slices[side].size(); ++i) {
        if (is_matched[side][i]) continue;
        OpDifference op{.rank = pair.rank};
        set(op, side, *slices[side][i]);
        ++diff_.unmatched_count[side];
        diff_.unmatched_nanoseconds[side] += op.nanoseconds[side];
        diff_.unmatched.push_back(op);
      }
    }
  }

  std::array<const DeviceTrace*, 2> traces_;
  NameKeys names_;
  std::map<std::tuple<std::uint32_t, std::int32_t, SliceDirection>, std::uint32_t> keys_;
  StepDiff& diff_;
};

}  // namespace

StepDiff diff_steps(const DeviceTrace& simulated, const DeviceTrace& real,
                    const StepDiffOptions& options, std::vector<Problem>& problems) {
  StepDiff diff;
  std::vector<Pair> pairs = pair_ranks(simulated, real);
  const std::size_t before = problems.size();
  choose_steps(pairs, options, problems);
  if (problems.size() > before) return diff;
  for (const Pair& pair : pairs) {
    diff.ranks.push_back(pair.rank);
    diff.compared.push_back(
        {.rank = pair.rank,
         .places = {static_cast<std::size_t>(pair.traces[0] - simulated.ranks.data()),
                    static_cast<std::size_t>(pair.traces[1] - real.ranks.data())},
         .steps = {*pair.steps[0], *pair.steps[1]}});
  }
  diff.tells_waits = simulated.knows_waits && real.knows_waits;
  for (const DeviceTrace* trace : {&simulated, &real}) {
    for (const std::string& note : trace->notes) {
      if (std::ranges::find(diff.notes, note) == diff.notes.end()) diff.notes.push_back(note);
    }
  }
  add_kinds(pairs, diff);
  OpMatcher(simulated, real, diff).match(pairs);
  return diff;
}

}  // namespace stepsim
