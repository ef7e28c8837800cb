// InstantQueue holds ids of a dense table (slots) until an instant. All slots of one instant are
// together:
//
//   queue.push(instant, slot);
//   if (!queue.empty()) { auto at = queue.next(); queue.pop(slots); }   // the earliest instant's
//
// Slots that wait for the same instant share one entry of the heap as long as the small table of
// recent instants remembers it, so a thousand messages sent together cost one heap operation.
// pop() may therefore leave some of an instant behind: repeat it while next() is the same. The
// order within an instant is not defined. No allocation once the largest size was reached.

#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

template <typename Slot>
class InstantQueue {
 public:
  bool empty() const { return heap_.empty(); }

  // REQUIRES: !empty()
  std::int64_t next() const { return heap_.front().at; }

  // REQUIRES: slot is not in the queue.
  void push(std::int64_t at, Slot slot) {
    if (slot.index() >= next_.size()) next_.resize(slot.index() + 1);
    std::uint32_t& recent = recent_[hash(at)];
    if (recent < batches_.size() && batches_[recent].first && batches_[recent].at == at) {
      next_[slot] = batches_[recent].first;
      batches_[recent].first = slot;
      return;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(batches_.size()));
      batches_.push_back({});
    }
    recent = free_.back();
    free_.pop_back();
    next_[slot] = {};
    batches_[recent] = {at, slot};
    heap_.push_back({at, recent});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  // Appends slots that wait for next() and removes them. REQUIRES: !empty()
  void pop(std::vector<Slot>& slots) {
    assert(!empty());
    const std::uint32_t batch = heap_.front().batch;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    for (OptionalId<Slot> slot = batches_[batch].first; slot; slot = next_[*slot]) {
      slots.push_back(*slot);
    }
    batches_[batch].first = {};
    free_.push_back(batch);
  }

 private:
  static constexpr std::size_t kRecent = 256;

  struct Batch {
    std::int64_t at = 0;
    OptionalId<Slot> first{};  // first of a chain through next_; unset: the batch is free
  };

  struct Entry {
    std::int64_t at;
    std::uint32_t batch;
  };

  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.at > b.at; }
  };

  static std::size_t hash(std::int64_t at) {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(at) * 0x9E3779B97F4A7C15u) >> 56);
  }

  IdTable<Slot, OptionalId<Slot>> next_;  // the next one of the same batch
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> free_;  // batches
  std::vector<Entry> heap_;
  std::array<std::uint32_t, kRecent> recent_{};  // by hash of the instant: a batch to compare
};

}  // namespace stepsim
