// EventQueue is the clock of one simulation. Events leave it in order of time; events of equal time
// leave in the order they were scheduled, so a run is repeatable.
//
// An event is plain data, four bits of kind and an index; its owner decides what they mean:
//
//   EventQueue queue;
//   queue.schedule(queue.now() + 5us, Event(kComputeEnds, rank));
//   while (!queue.empty()) {
//     handle(queue.pop());  // now() is the time of that event
//   }
//
// There is no cancel(): the owner remembers what it waits for and skips an event that is stale.
//
// A 4-ary heap of 16-byte entries: the four children of an entry share one cache line. pop() walks
// the hole down to a leaf along the earliest children and then lets the last entry rise from there
// (it nearly always belongs near the bottom), which saves a comparison a level. Time, a 32-bit
// sequence number and the event are one 128-bit number, so an order is one comparison without a
// branch; when the sequence numbers are used up, those of the waiting events are given anew.
// schedule() and pop() are O(log n) and do not allocate once the queue has reached its largest
// size. Not thread-safe.

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "sim/base/units.h"

namespace stepsim {

// REQUIRES: kind < 16, index < 2^28.
class Event {
 public:
  constexpr Event() = default;
  constexpr Event(std::uint32_t kind, std::uint32_t index) : bits_(kind << 28 | index) {
    assert(kind < 16 && index < (1U << 28));
  }
  constexpr std::uint32_t kind() const { return bits_ >> 28; }
  constexpr std::uint32_t index() const { return bits_ & ((1U << 28) - 1); }
  constexpr std::uint32_t bits() const { return bits_; }
  static constexpr Event from_bits(std::uint32_t bits) {
    return Event(bits >> 28, bits & ((1U << 28) - 1));
  }
  friend constexpr bool operator==(Event, Event) = default;

 private:
  std::uint32_t bits_ = 0;
};

class EventQueue {
 public:
  EventQueue() = default;
  ~EventQueue() { release(storage_); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Returns the time of the last event popped, or the time set by advance_to(); zero at first.
  Time now() const { return now_; }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // REQUIRES: !empty()
  Time next_time() const {
    assert(!empty());
    return time_of(heap_[0]);
  }

  // REQUIRES: at >= now(). Scheduling at now() is allowed: the event comes after those already
  // waiting for the same time.
  void schedule(Time at, Event event) {
    assert(at >= now_);
    if (size_ == capacity_) grow();
    if (next_sequence_ == kLastSequence) renumber();
    rise(size_++, key(at, next_sequence_++, event));
  }

  // Removes the earliest event and moves now() to its time. REQUIRES: !empty()
  Event pop() {
    assert(!empty());
    const Key first = heap_[0];
    now_ = time_of(first);
    const Key last = heap_[--size_];
    if (size_ > 0) {
      rise(sink_hole(), last);
    }
    return Event::from_bits(static_cast<std::uint32_t>(first));
  }

  // Moves now() without an event. REQUIRES: now() <= to, and no event waits for an earlier time.
  void advance_to(Time to) {
    assert(now_ <= to && (empty() || to <= next_time()));
    now_ = to;
  }

 private:
  // From the most significant bits: time in picoseconds (64 bits), sequence number (32), event
  // (32).
  __extension__ typedef unsigned __int128 Key;

  static constexpr std::size_t kLine = 64;
  // Entry 0 is the last of its cache line, so children 4i+1 .. 4i+4 share a line.
  static constexpr std::size_t kOffset = 3;
  static constexpr std::uint32_t kLastSequence = 0xffffffff;

  static Key key(Time at, std::uint32_t sequence, Event event) {
    const auto time = static_cast<std::uint64_t>(at.since_start.count());
    return Key{time} << 64 | Key{std::uint64_t{sequence} << 32 | event.bits()};
  }
  static Time time_of(Key key) {
    return Time{Duration(static_cast<std::int64_t>(static_cast<std::uint64_t>(key >> 64)))};
  }

  static std::size_t choose_index(std::size_t first, std::size_t a, std::size_t b) {
    return b ^ ((a ^ b) & (std::size_t{0} - first));
  }
  static Key choose(std::size_t first, Key a, Key b) {
    const std::uint64_t mask = std::uint64_t{0} - first;
    const auto low = static_cast<std::uint64_t>(b) ^
                     ((static_cast<std::uint64_t>(a) ^ static_cast<std::uint64_t>(b)) & mask);
    const auto a_high = static_cast<std::uint64_t>(a >> 64);
    const auto b_high = static_cast<std::uint64_t>(b >> 64);
    return Key{b_high ^ ((a_high ^ b_high) & mask)} << 64 | Key{low};
  }

  // Moves the earliest child up into the hole at the root, repeatedly. Returns the leaf that
  // becomes free. The last entry has been removed before.
  std::size_t sink_hole() {
    std::size_t hole = 0;
    std::size_t child = 1;
    for (; child + 3 < size_; child = 4 * hole + 1) {
      // Masks choose both values, so a child's value is known without a second load.
      const Key* four = heap_ + child;
      const Key* grandchildren = heap_ + (4 * child + 1);
      __builtin_prefetch(grandchildren);
      __builtin_prefetch(grandchildren + 4);
      __builtin_prefetch(grandchildren + 8);
      __builtin_prefetch(grandchildren + 12);
      const Key a = four[0];
      const Key b = four[1];
      const Key c = four[2];
      const Key d = four[3];
      const std::size_t b_first = b < a;
      const std::size_t d_first = d < c;
      const Key left = choose(b_first, b, a);
      const Key right = choose(d_first, d, c);
      const std::size_t right_first = right < left;
      const std::size_t best = child + choose_index(right_first, 2 + d_first, b_first);
      heap_[hole] = choose(right_first, right, left);
      hole = best;
    }
    if (child < size_) {
      std::size_t best = child;
      for (std::size_t other = child + 1; other < size_; ++other) {
        if (heap_[other] < heap_[best]) best = other;
      }
      heap_[hole] = heap_[best];
      hole = best;
    }
    return hole;
  }

  void rise(std::size_t hole, Key entry) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!(entry < heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  // Gives the waiting events the sequence numbers 0, 1, 2, ... in their order. A sorted array is a
  // heap.
  void renumber() {
    std::sort(heap_, heap_ + size_);
    next_sequence_ = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      heap_[i] = key(time_of(heap_[i]), next_sequence_++,
                     Event::from_bits(static_cast<std::uint32_t>(heap_[i])));
    }
  }

  void grow() {
    const std::size_t capacity = capacity_ == 0 ? 64 : 2 * capacity_;
    auto* storage = static_cast<Key*>(
        ::operator new((capacity + kOffset) * sizeof(Key), std::align_val_t(kLine)));
    std::uninitialized_copy_n(heap_, size_, storage + kOffset);
    release(storage_);
    storage_ = storage;
    heap_ = storage + kOffset;
    capacity_ = capacity;
  }

  static void release(Key* storage) { ::operator delete(storage, std::align_val_t(kLine)); }

  Key* storage_ = nullptr;
  Key* heap_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  Time now_;
  std::uint32_t next_sequence_ = 0;
};

}  // namespace stepsim
