// InstantQueue holds small numbers (slots) until an instant, all those of one instant together:
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
#include <limits>
#include <vector>

namespace stepsim {

class InstantQueue {
 public:
  bool empty() const { return heap_.empty(); }

  // REQUIRES: !empty()
  std::int64_t next() const { return heap_.front().at; }

  // REQUIRES: slot is not in the queue.
  void push(std::int64_t at, std::uint32_t slot) {
    if (slot >= next_.size()) next_.resize(slot + 1, kNone);
    std::uint32_t& recent = recent_[hash(at)];
    if (recent < batches_.size() && batches_[recent].first != kNone && batches_[recent].at == at) {
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
    next_[slot] = kNone;
    batches_[recent] = {at, slot};
    heap_.push_back({at, recent});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  // Appends slots that wait for next() and removes them. REQUIRES: !empty()
  void pop(std::vector<std::uint32_t>& slots) {
    assert(!empty());
    const std::uint32_t batch = heap_.front().batch;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    for (std::uint32_t slot = batches_[batch].first; slot != kNone; slot = next_[slot]) {
      slots.push_back(slot);
    }
    batches_[batch].first = kNone;
    free_.push_back(batch);
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kRecent = 256;

  struct Batch {
    std::int64_t at = 0;
    std::uint32_t first = kNone;  // of a chain through next_; kNone: the batch is free
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

  std::vector<std::uint32_t> next_;  // by slot: the next one of the same batch
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> free_;  // batches
  std::vector<Entry> heap_;
  std::array<std::uint32_t, kRecent> recent_{};  // by hash of the instant: a batch, to be checked
};

}  // namespace stepsim
