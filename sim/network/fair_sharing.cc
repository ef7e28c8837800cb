#include "sim/network/fair_sharing.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace stepsim {
namespace {

constexpr double kRoundUpFrom = 0.4871;   // fraction of a picosecond
constexpr double kCancelsBelow = 1e-3;    // relative to the subtracted weight
constexpr std::uint8_t kScanAfter = 255;  // changes
constexpr std::size_t kManyArrivals = 4096;

double largest_capacity(const Fabric& fabric) {
  double largest = 0;
  for (const Link& link : fabric.links()) {
    const double capacity = link.bandwidth.value() / kPicosecondsPerSecond;
    if (std::isfinite(capacity)) largest = std::max(largest, capacity);
  }
  return largest > 0 ? largest : 1;
}

// Returns the picoseconds until the volume reaches the key, as a fraction.
double time_left(double key, double volume, double level) {
  return (key - volume) / level;
}

std::int64_t rounded_finish(std::int64_t settled, double left) {
  if (!(left + static_cast<double>(settled) < kTimeLimit)) refuse_time();
  return settled + static_cast<std::int64_t>(std::max(left, 0.0) + (1 - kRoundUpFrom));
}

}  // namespace

FairSharing::FairSharing(const Fabric& fabric, std::optional<std::uint64_t> evaluation_limit)
    : books_(fabric.links_and_groups()),
      queue_(fabric.links_and_groups(), largest_capacity(fabric)),
      finishes_(fabric.links_and_groups()),
      pushed_(fabric.links_and_groups() + 1),
      evaluation_limit_(evaluation_limit) {
  links_.reserve(books_.size());
  for (std::uint32_t id = 0; id < books_.size(); ++id) {
    links_.push_back({.level = kInfinite,
                      .capacity = fabric.bandwidth(LinkId(id)).value() / kPicosecondsPerSecond});
  }
}

// ---- arrivals and departures ----

FairSharing::Slot FairSharing::add(TransferId id, Bytes bytes, std::span<const LinkUse> uses) {
  const std::size_t size = uses.size();
  if (size >= free_uses_.size()) free_uses_.resize(size + 1);
  std::uint32_t begin = 0;
  if (free_uses_[size].empty()) {
    begin = static_cast<std::uint32_t>(use_links_.size());
    use_links_.resize(use_links_.size() + size);
    row_positions_.resize(use_links_.size());
    if (!weights_.empty()) weights_.resize(use_links_.size());
  } else {
    begin = free_uses_[size].back();
    free_uses_[size].pop_back();
  }
  const bool is_weighted =
      std::any_of(uses.begin(), uses.end(), [](const LinkUse& use) { return use.weight != 1; });
  if (is_weighted && weights_.empty()) weights_.resize(use_links_.size());
  double narrowest = kInfinite;
  for (std::size_t i = 0; i < size; ++i) {
    const LinkUse& use = uses[i];
    assert(use.link.index() < links_.size() && use.weight > 0);
    narrowest = std::min(narrowest, links_[use.link].capacity);
    use_links_[begin + i] = use.link;
    if (is_weighted) weights_[begin + i] = use.weight;
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(transfers_.next());
    transfers_.push_back({});
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  transfers_[slot] = {.id = id,
                      .bytes = static_cast<double>(bytes.value()),
                      .uses_begin = begin,
                      .uses_size = static_cast<std::uint32_t>(size),
                      .bottleneck = {},
                      .heap_position = 0,
                      .needs_no_time = bytes <= Bytes(0) || narrowest == kInfinite,
                      .is_active = false,
                      .is_weighted = is_weighted};
  return slot;
}

void FairSharing::release(Slot slot) {
  const Transfer& transfer = transfers_[slot];
  free_uses_[transfer.uses_size].push_back(transfer.uses_begin);
  free_slots_.push_back(slot);
}

void FairSharing::join(Slot slot) {
  assert(!needs_no_time(slot));
  arrivals_.push_back({transfers_[slot].id, slot});
}

void FairSharing::pass(Slot slot) {
  assert(needs_no_time(slot));
  const Transfer& transfer = transfers_[slot];
  const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
  for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
    books_[use_links_[use]].carried += weight_of(transfer, use) * transfer.bytes;
  }
}

void FairSharing::admit_arrivals() {
  if (arrivals_.empty()) return;
  const auto by_id = [](const Arrival& a, const Arrival& b) { return a.id < b.id; };
  if (!std::is_sorted(arrivals_.begin(), arrivals_.end(), by_id)) {
    std::sort(arrivals_.begin(), arrivals_.end(), by_id);
  }
  if (arrivals_.size() >= kManyArrivals) make_room_for_arrivals();
  for (const Arrival& arrival : arrivals_) {
    const Transfer& transfer = transfers_[arrival.slot];
    const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
    for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
      const LinkId index = use_links_[use];
      Books& books = books_[index];
      row_positions_[use] = books.row.size;
      rows_.push_back(books.row, {arrival.slot, use});
      ++books.arriving;
      ++links_[index].crossing;
      touch(index);
    }
  }
  active_ += arrivals_.size();
  for (const Arrival& arrival : arrivals_) place(arrival.slot);
  arrivals_.clear();
}

// A row that doubles leaves shorter gaps behind. So rows grow for many arrivals at once.
void FairSharing::make_room_for_arrivals() {
  IdTable<LinkId, std::uint32_t> arriving(links_.size(), 0);
  for (const Arrival& arrival : arrivals_) {
    for (const LinkId index : links_of(transfers_[arrival.slot])) ++arriving[index];
  }
  for (LinkId index(0); index < links_.next(); index = LinkId(index.index() + 1)) {
    if (arriving[index] > 0) rows_.reserve(books_[index].row, arriving[index]);
  }
}

// Assigns a new transfer its probable bottleneck; evaluations correct a wrong guess. The guess for
// a link is its free share, but at least an equal part of the whole link.
void FairSharing::place(Slot slot) {
  Transfer& transfer = transfers_[slot];
  const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
  double guess = kInfinite;
  LinkId narrowest = use_links_[transfer.uses_begin];
  for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
    const LinkId index = use_links_[use];
    const Link& link = links_[index];
    const double weight = weight_of(transfer, use);
    const double arriving = books_[index].arriving--;
    double share = link.capacity;
    if (link.crossing == 1) {
      if (weight != 1) share /= weight;
    } else {
      share = std::max((share - link.foreign) / (link.own_weight + arriving * weight),
                       share / (link.crossing * weight));
    }
    if (share < guess) {
      guess = share;
      narrowest = index;
    }
  }
  set_bottleneck(transfer, narrowest);
  Link& bottleneck = links_[transfer.bottleneck];
  if (bottleneck.own_weight > 0) {
    settle_volume(bottleneck);
  } else {
    bottleneck.level = guess;
    bottleneck.settled = now_;
  }
  const double rate = bottleneck.level;
  for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
    Link& link = links_[use_links_[use]];
    const double weight = weight_of(transfer, use);
    if (&link == &bottleneck) {
      link.own_weight += weight;
    } else {
      link.foreign += weight * rate;
      link.fastest_foreign = std::max(link.fastest_foreign, rate);
    }
  }
  transfer.is_active = true;
  heap_push(books_[transfer.bottleneck].own,
            own_entry(bottleneck.volume + transfer.bytes, slot, transfer));
  ++rate_updates_;
}

void FairSharing::take_finished(std::int64_t now, std::vector<Slot>& finished) {
  assert(now == next_finish());
  now_ = now;
  finishing_.clear();
  finishes_.collect(finishing_);
  finished_.clear();
  for (const std::uint32_t number : finishing_) {
    const LinkId index(number);
    const Link& link = links_[index];
    PooledArray& own = books_[index].own;
    while (!own.empty()) {
      const Own first = *heaps_.data(own);
      const double left = time_left(first.key, link.volume, link.level);
      if (rounded_finish(link.settled, left) > now) break;
      const double late = static_cast<double>(link.settled - now) + left;
      finished_.push_back({transfers_[first.slot].id, first.slot, link.level, late});
      heap_remove(own, 0);
    }
  }
  const auto by_id = [](const Finished& a, const Finished& b) { return a.id < b.id; };
  if (!std::is_sorted(finished_.begin(), finished_.end(), by_id)) {
    std::sort(finished_.begin(), finished_.end(), by_id);
  }
  for (const Finished& one : finished_) {
    leave(one);
    finished.push_back(one.slot);
  }
  active_ -= finished_.size();
}

// Removes a transfer, which is no longer in the heap of its bottleneck, from all its links.
void FairSharing::leave(const Finished& finished) {
  Transfer& transfer = transfers_[finished.slot];
  transfer.is_active = false;
  const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
  for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
    const LinkId index = use_links_[use];
    const double weight = weight_of(transfer, use);
    Link& link = links_[index];
    Books& books = books_[index];
    Crossing* const row = rows_.data(books.row);
    const Crossing last = row[--books.row.size];
    row[row_positions_[use]] = last;
    row_positions_[last.use] = row_positions_[use];
    --link.crossing;
    books.carried += weight * finished.rate * finished.late;
    if (index != transfer.bottleneck) {
      link.foreign -= weight * finished.rate;
    } else {
      lose_own(index, weight);
    }
    if (link.crossing == 0) {
      link.foreign = 0;
      link.fastest_foreign = 0;
      link.since_scan = 0;
    }
    touch(index);
  }
}

// Subtracts the weight of an own transfer that is no longer in the heap.
void FairSharing::lose_own(LinkId index, double weight) {
  Link& link = links_[index];
  const Books& books = books_[index];
  if (books.own.empty()) {
    link.level = kInfinite;
    link.own_weight = 0;
    link.volume = 0;
    return;
  }
  link.own_weight -= weight;
  if (link.own_weight > weight * kCancelsBelow) return;
  link.own_weight = 0;  // the rest is mostly rounding error, so add it up again
  for (const Crossing& crossing : rows_.view(books.row)) {
    const Transfer& transfer = transfers_[crossing.slot];
    if (transfer.bottleneck == index) link.own_weight += weight_of(transfer, crossing.use);
  }
}

// ---- making rates fair ----

void FairSharing::settle(std::int64_t now) {
  now_ = now;
  if (arrivals_.empty() && touched_.empty()) return;
  admit_arrivals();
  for (const LinkId index : touched_) queue_unless_at_rest(index);
  solve();
  close_books();
  assert(active_ > 64 || links_.size() > 1024 || !unfairness());
}

void FairSharing::add_up_foreign(LinkId index) {
  Link& link = links_[index];
  link.foreign = 0;
  link.fastest_foreign = 0;
  for (const Crossing& crossing : rows_.view(books_[index].row)) {
    const Transfer& transfer = transfers_[crossing.slot];
    if (transfer.bottleneck == index) continue;
    link.foreign += weight_of(transfer, crossing.use) * rate_of(transfer);
    link.fastest_foreign = std::max(link.fastest_foreign, rate_of(transfer));
  }
  link.since_scan = 0;
}

// Brings carried bytes and finish times of all touched links up to date.
void FairSharing::close_books() {
  for (const LinkId index : touched_) {
    Link& link = links_[index];
    Books& books = books_[index];
    link.is_touched = false;
    if (link.crossing > 0 && ++link.since_scan == kScanAfter) add_up_foreign(index);
    double used = link.foreign;
    if (link.own_weight > 0) {
      used += link.own_weight * link.level;
      const double key = heaps_.data(books.own)->key;
      finishes_.set(index.index(),
                    rounded_finish(link.settled, time_left(key, link.volume, link.level)));
    } else {
      finishes_.clear(index.index());
    }
    if (used != books.used) {
      books.carried += books.used * static_cast<double>(now_ - books.since);
      books.since = now_;
      books.used = used;
    }
  }
  touched_.clear();
  finishes_.flush();
}

double FairSharing::carried(LinkId link, std::int64_t at) const {
  const Books& books = books_[link];
  return books.carried + books.used * static_cast<double>(at - books.since);
}

// ---- heaps of own transfers: least key first; transfers know their positions ----

void FairSharing::heap_push(PooledArray& heap, const Own& entry) {
  heaps_.push_back(heap, entry);
  heap_sift(heap, heap.size - 1, entry);
}

void FairSharing::heap_remove(PooledArray& heap, std::uint32_t position) {
  const Own last = heaps_.data(heap)[--heap.size];
  if (position < heap.size) heap_sift(heap, position, last);
}

// Moves `entry` to its place in the heap, starting from the free place at `position`.
void FairSharing::heap_sift(PooledArray& heap, std::uint32_t position, const Own& entry) {
  Own* const entries = heaps_.data(heap);
  const auto put = [&](const Own& what, std::uint32_t where) {
    entries[where] = what;
    transfers_[what.slot].heap_position = where;
  };
  while (position > 0 && entry.key < entries[(position - 1) / 2].key) {
    put(entries[(position - 1) / 2], position);
    position = (position - 1) / 2;
  }
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= heap.size) break;
    if (child + 1 < heap.size && entries[child + 1].key < entries[child].key) ++child;
    if (!(entries[child].key < entry.key)) break;
    put(entries[child], position);
    position = child;
  }
  put(entry, position);
}

}  // namespace stepsim
