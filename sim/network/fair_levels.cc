// The part of FairSharing that corrects links: the incremental search for max-min fair levels.

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "sim/network/fair_sharing.h"

namespace stepsim {
namespace {

constexpr double kCaptureAbove = 1 + 1e-12;  // relative to the trial level
constexpr double kSameLevel = 1e-13;         // relative; must be below the capture threshold
constexpr std::size_t kPrefetchAhead = 8;    // transfers

bool is_overloaded(double load, double capacity) {
  return load > capacity * kCaptureAbove;
}

}  // namespace

void FairSharing::queue_unless_at_rest(LinkId index) {
  Link& link = links_[index];
  if (link.is_queued) return;
  const double rest = link.capacity - link.foreign;
  if (link.own_weight > 0) {
    const double owned = link.own_weight * link.level;
    if (std::abs(rest - owned) <= kSameLevel * owned &&
        link.fastest_foreign <= link.level * kCaptureAbove) {
      return;
    }
  } else if (!is_overloaded(link.foreign, link.capacity)) {
    return;
  }
  const double equal_part = link.capacity / link.crossing;
  link.is_queued = true;
  queue_.push(index, std::max(rest / link.own_weight, equal_part));
}

void FairSharing::solve() {
  if (queue_.empty()) return;
  const std::uint64_t limit =
      evaluations_ + evaluation_limit_.value_or(1000 + 16 * (links_.size() + active_));
  while (!queue_.empty()) {
    const LinkId index = queue_.pop();
    links_[index].is_queued = false;
    if (evaluations_ == limit) {
      while (!queue_.empty()) links_[queue_.pop()].is_queued = false;
      refill();
      return;
    }
    ++evaluations_;
    evaluate(index);
  }
}

void FairSharing::evaluate(LinkId index) {
  const Link& link = links_[index];
  double own_weight = link.own_weight;
  if (own_weight == 0 && !is_overloaded(link.foreign, link.capacity)) return;
  double level = own_weight > 0 ? (link.capacity - link.foreign) / own_weight : -kInfinite;
  captured_.clear();
  if (link.fastest_foreign > level * kCaptureAbove) {
    level = capture_faster(index, level, own_weight);
  }
  if (captured_.empty() &&
      (own_weight == 0 || std::abs(level - link.level) <= kSameLevel * link.level)) {
    return;
  }
  set_level(index, level, own_weight);
}

// Adds up the row of the link, fills captured_, and returns the level with the captured transfers.
// Their rates do not change yet, but the link counts them as its own: in `own_weight`, no longer in
// `foreign`.
double FairSharing::capture_faster(LinkId index, double level, double& own_weight) {
  Link& link = links_[index];
  const double surely_slower = level > 0 ? level * (1 - 1e-9) : 0;
  double foreign = 0;
  double own = 0;
  double slower = 0;
  faster_.clear();
  for (const Crossing& crossing : rows_.view(books_[index].row)) {
    const Transfer& transfer = transfers_[crossing.slot];
    const double weight = weight_of(transfer, crossing.use);
    if (transfer.bottleneck == index) {
      own += weight;
      continue;
    }
    const double rate = rate_of(transfer);
    foreign += weight * rate;
    if (rate > surely_slower) {
      faster_.push_back({rate, weight, transfer.id, crossing.slot});
    } else {
      slower = std::max(slower, rate);
    }
  }
  link.since_scan = 0;
  level = own > 0 ? (link.capacity - foreign) / own : -kInfinite;
  const bool is_needed = own > 0 || is_overloaded(foreign, link.capacity);
  const auto later = [](const Faster& a, const Faster& b) {
    return std::tuple(a.rate, b.id) < std::tuple(b.rate, a.id);
  };
  std::make_heap(faster_.begin(), faster_.end(), later);
  while (is_needed && !faster_.empty() && faster_.front().rate > level * kCaptureAbove) {
    captured_.push_back(faster_.front());
    std::pop_heap(faster_.begin(), faster_.end(), later);
    faster_.pop_back();
    foreign -= captured_.back().weight * captured_.back().rate;
    own += captured_.back().weight;
    level = (link.capacity - foreign) / own;
  }
  link.foreign = foreign;
  link.fastest_foreign = faster_.empty() ? slower : faster_.front().rate;
  own_weight = own;
  return level;
}

// Sets the link's level and takes over the transfers in captured_, and tells all other links.
void FairSharing::set_level(LinkId index, double level, double own_weight) {
  Link& link = links_[index];
  settle_volume(link);
  const std::span<const Own> own = heaps_.view(books_[index].own);
  const double change = level - link.level;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i + kPrefetchAhead < own.size()) {
      __builtin_prefetch(use_links_.data() + own[i + kPrefetchAhead].uses_begin);
    }
    push(own[i], change, level);
  }
  link.level = level;
  link.own_weight = own_weight;
  for (const Faster& captured : captured_) move_to(index, level, captured);
  rate_updates_ += books_[index].own.size;
  touch(index);
  for (std::size_t i = 0; i < pushed_count_; ++i) {
    links_[pushed_[i]].is_pushed = false;
    touch(pushed_[i]);
    queue_unless_at_rest(pushed_[i]);
  }
  pushed_count_ = 0;
}

// Makes a foreign transfer an own one, at the level that has just been set.
void FairSharing::move_to(LinkId index, double level, const Faster& captured) {
  Transfer& transfer = transfers_[captured.slot];
  const LinkId old_index = transfer.bottleneck;
  Link& old = links_[old_index];
  PooledArray& old_heap = books_[old_index].own;
  settle_volume(old);
  const double key = heaps_.data(old_heap)[transfer.heap_position].key;
  const double bytes_left = std::max(key - old.volume, 0.0);
  heap_remove(old_heap, transfer.heap_position);
  const double weight = weight_of(transfer, transfer.uses_begin);
  lose_own(old_index, weight);
  old.foreign += weight * captured.rate;
  set_bottleneck(transfer, index);
  const Own own = own_entry(links_[index].volume + bytes_left, captured.slot, transfer);
  push(own, level - captured.rate, level);
  heap_push(books_[index].own, own);
}

// Puts the bottleneck first among the links that its transfer uses.
void FairSharing::set_bottleneck(Transfer& transfer, LinkId index) {
  transfer.bottleneck = index;
  const std::uint32_t first = transfer.uses_begin;
  std::uint32_t use = first;
  while (use_links_[use] != index) ++use;
  if (use == first) return;
  std::swap(use_links_[first], use_links_[use]);
  std::swap(row_positions_[first], row_positions_[use]);
  if (transfer.is_weighted) std::swap(weights_[first], weights_[use]);
  for (const std::uint32_t moved : {first, use}) {
    rows_.data(books_[use_links_[moved]].row)[row_positions_[moved]].use = moved;
  }
}

// Tells the links of a transfer, except its bottleneck. Under contention this is the inner loop, so
// it has no branch.
void FairSharing::push(const Own& own, double change, double rate) {
  const LinkId* const begin = use_links_.data() + own.uses_begin;
  const auto push_to = [&](LinkId index, double weighted_change) {
    Link& link = links_[index];
    link.foreign += weighted_change;
    link.fastest_foreign = std::max(link.fastest_foreign, rate);
    pushed_[pushed_count_] = index;
    pushed_count_ += link.is_pushed ? 0 : 1;
    link.is_pushed = true;
  };
  if (own.is_weighted) {
    const double* const weights = weights_.data() + own.uses_begin;
    for (std::uint32_t i = 1; i < own.uses_size; ++i) push_to(begin[i], weights[i] * change);
  } else {
    for (std::uint32_t i = 1; i < own.uses_size; ++i) push_to(begin[i], change);
  }
}

}  // namespace stepsim
