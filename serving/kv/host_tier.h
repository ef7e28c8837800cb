// HostTier is a replica's second cache of KV blocks, in the memory of its host: the names of the
// blocks that it keeps, least recently used first. Blocks that the pool evicts come in, and find
// their way back when a request begins with them; a block that goes back stays here too.
//
// A full tier drops the block that was used least recently, but none that is being copied to the
// chips; if all are, it leaves the new one. Every function is O(1), but for blocks being copied.

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace stepsim {

struct HostTierTotals {
  std::int64_t blocks = 0;   // of the tier
  std::int64_t peak = 0;     // most kept at one time
  std::int64_t written = 0;  // blocks that came from the chips
  std::int64_t read = 0;     // that went back
  std::int64_t dropped = 0;  // for lack of room
};

class HostTier {
 public:
  using Name = std::uint64_t;

  explicit HostTier(std::int64_t blocks) : totals_{.blocks = blocks} {}

  bool empty() const { return totals_.blocks == 0; }  // there is none
  std::int64_t held() const { return static_cast<std::int64_t>(order_.size()); }
  const HostTierTotals& totals() const { return totals_; }
  // Blocks written and not dropped are there; none is being copied. For always-on checks.
  bool is_balanced_and_idle() const {
    return totals_.written - totals_.dropped == held() && copying_ == 0 && held() <= totals_.blocks;
  }

  bool has(Name name) const { return entries_.contains(name); }
  // Keeps a block that the chips lose. It is written unless it is there already.
  void keep(Name name);
  // A block is copied to the chips until end_read(). REQUIRES: has(name).
  void begin_read(Name name);
  void end_read(Name name);

 private:
  struct Entry {
    std::list<Name>::iterator place;
    std::int32_t readers = 0;
  };

  void touch(Entry& entry) { order_.splice(order_.end(), order_, entry.place); }
  bool drop_one();

  HostTierTotals totals_;
  std::int64_t copying_ = 0;
  std::list<Name> order_{};  // least recently used first
  std::unordered_map<Name, Entry> entries_{};
};

}  // namespace stepsim
