// Parts of a port that both packet networks use: the queue of packets, and the count of bytes sent
// up to an instant.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepsim {

// A queue in one block of memory, of a size that is a power of two.
template <typename Entry>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Entry& front() { return entries_[first_]; }
  const Entry& front() const { return entries_[first_]; }
  Entry& back() { return entries_[(first_ + size_ - 1) & (entries_.size() - 1)]; }

  void pop_front() {
    first_ = (first_ + 1) & (entries_.size() - 1);
    --size_;
  }

  void push_back(const Entry& entry) {
    if (size_ == entries_.size()) grow();
    ++size_;
    back() = entry;
  }

 private:
  void grow() {
    std::vector<Entry> larger(std::max<std::size_t>(2 * entries_.size(), kSmallest));
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = entries_[(first_ + i) & (entries_.size() - 1)];
    }
    entries_.swap(larger);
    first_ = 0;
  }

  static constexpr std::size_t kSmallest = 4;

  std::vector<Entry> entries_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

// SentBytes records packets that a port has sent, or will send without a pause, as runs of equal
// packets back to back. Within a busy period it keeps only the runs that may still be asked for;
// with packets of one size that is a single run.
class SentBytes {
 public:
  // Appends `count` packets from `begin` on, `each` picoseconds long. Later calls ask only about
  // times from `now` on. REQUIRES: begin >= end of all appended before, begin >= now.
  void append(std::int64_t now, std::int64_t begin, std::int64_t each, std::int64_t count,
              std::int64_t bytes) {
    accepted_ += count * bytes;
    if (begin == last_.end && bytes == last_.bytes) {
      last_.end += count * each;
      return;
    }
    if (last_.end > now) {
      keep_last(now);
    } else {
      earlier_.clear();
    }
    last_ = {begin, begin + count * each, each, bytes};
  }

  // Counts packets under way by the part that has left. REQUIRES: at >= the last `now`.
  double up_to(std::int64_t at) const {
    double left = static_cast<double>(accepted_);
    left -= unsent(last_, at);
    for (const Run& run : earlier_) left -= unsent(run, at);
    return left;
  }

 private:
  struct Run {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t each = 0;  // picoseconds per packet
    std::int64_t bytes = 0;
  };

  static double unsent(const Run& run, std::int64_t at) {
    if (at >= run.end) return 0;
    const std::int64_t left = run.end - std::max(at, run.begin);
    return static_cast<double>(left) / static_cast<double>(run.each) *
           static_cast<double>(run.bytes);
  }

  void keep_last(std::int64_t now) {
    if (earlier_.size() == earlier_.capacity()) {
      std::erase_if(earlier_, [now](const Run& run) { return run.end <= now; });
      if (2 * earlier_.size() > earlier_.capacity()) earlier_.reserve(2 * earlier_.capacity());
    }
    earlier_.push_back(last_);
  }

  std::int64_t accepted_ = 0;  // bytes of all runs so far
  Run last_;
  std::vector<Run> earlier_;  // earlier runs that may not have ended
};

}  // namespace stepsim
