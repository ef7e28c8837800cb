// FairSharing keeps the max-min fair rates of active transfers while transfers start and end, and
// knows when the next one will end. It is the core of FlowNetwork, which adds latencies and the
// interface. Times here are plain picoseconds; rates are bytes per picosecond. A group of links is
// treated like a link with the bandwidth of its average link.
//
// The result. Transfer f at rate r uses weight(f, l) * r of each of its links l. Rates are
// max-min fair over transfers: no rate can grow without another, not larger one shrinking. A set
// of rates is that if and only if no link is overloaded and every transfer has a BOTTLENECK: a
// full link on which no other transfer is faster.
//
// The invariant. Every transfer belongs to one of its links, its bottleneck; it is that link's
// OWN transfer and FOREIGN on its others. All own transfers of a link have the same rate, its
// LEVEL, so no rate is stored anywhere. A link with own transfers of total weight n and foreign
// load F is AT REST if
//
//   n > 0:  n * level = capacity - F, and no foreign rate is above the level
//   n = 0:  F <= capacity
//
// If all links are at rest the rates are max-min fair. The conditions are local, so the order in
// which links are put right cannot change the result, only the cost; and a change of traffic costs
// only the links that it really alters, a handful out of thousands. F agrees with the current
// levels at every moment, also half-way through.
//
// Putting a link right (evaluate). Its trial level is t = (capacity - F) / n. Foreign transfers
// above t do not have their bottleneck where they think: the link CAPTURES them, fastest first,
// each capture raising t, until the next is not above t. Then the level is set, and the change
// is added to F of the other links of its own transfers; those no longer at rest wait in a queue,
// lowest level first, which leads to about one evaluation a link that changes. Each link also
// keeps an upper bound of its foreign rates, so that most evaluations need not look at its row.
//
// Two thresholds make noise harmless: a transfer is captured only above t * (1 + 1e-12), else
// links of equal level would steal from each other for ever; a level within 1e-13 of t is left
// untouched. That the procedure ends is observed, not proved: after `evaluation_limit` evaluations
// everything is filled afresh (refill), progressively from the lowest level up.
//
// Volume. A link integrates its level over time (its VIRTUAL VOLUME V): what an own transfer would
// have moved that was there all along. A transfer that joins with b bytes left is through when
// V = V(now) + b, its KEY, which does not change when the level does. So a change of level is O(1)
// for the finish times of all own transfers; a heap of keys a link and a tournament over the links
// (FinishTree) give the next end.
//
// Instants. Rates change at whole picoseconds only. A transfer leaves at the picosecond nearest to
// its true end (fractions round up from 0.4871: not a fraction that quotients of round numbers
// have, so that equal transfers on different links end together), but carried() counts it up to
// its true end.
//
// Determinism. Arrivals and ends of one instant are processed in order of id; nothing depends on
// slot numbers, addresses or the order of calls. Rates carry rounding errors of about 1e-13.
//
// Costs. A transfer alone on k links: O(k) to come and to go, 0.3 us in all for k = 16 (see
// bench/network_bench.cc). No allocation once the largest size was reached. Not thread-safe.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/array_pool.h"
#include "sim/network/fabric.h"
#include "sim/network/finish_tree.h"
#include "sim/network/level_queue.h"
#include "sim/network/network.h"

namespace stepsim {

class FairSharing {
 public:
  // A transfer's place from add() to release(); used again after that.
  using Slot = Id<struct FairSlotTag>;

  struct Rate {
    TransferId id;
    double bytes_per_second;
  };

  // evaluation_limit: number of evaluations in one settle() after which everything is filled
  // afresh. Unset: a limit that grows with the number of links and transfers.
  FairSharing(const Fabric& fabric, std::optional<std::uint64_t> evaluation_limit);

  // Stores a transfer, which does not move yet.
  Slot add(TransferId id, Bytes bytes, std::span<const LinkUse> uses);
  void release(Slot slot);

  TransferId id(Slot slot) const { return transfers_[slot].id; }
  bool needs_no_time(Slot slot) const { return transfers_[slot].needs_no_time; }

  // The transfer is active from the next settle() on. REQUIRES: !needs_no_time(slot)
  void join(Slot slot);

  // Counts all its bytes as carried now. REQUIRES: needs_no_time(slot)
  void pass(Slot slot);

  // Removes the transfers that end at `now` and appends them, in order of id. REQUIRES: now ==
  // next_finish()
  void take_finished(std::int64_t now, std::vector<Slot>& finished);

  // Makes all rates max-min fair. REQUIRES: now is not after next_finish()
  void settle(std::int64_t now);

  // Returns nullopt if no transfer is active. Valid after settle().
  std::optional<std::int64_t> next_finish() const { return finishes_.earliest(); }

  double carried(LinkId link, std::int64_t at) const;  // bytes; a group: its average link's
  std::uint64_t rate_updates() const { return rate_updates_; }
  std::uint64_t refills() const { return refills_; }

  // Returns active transfers in order of id. Valid after settle(). O(slots log slots): for tests.
  std::vector<Rate> rates() const;

  // Describes the first link or transfer that contradicts max-min fairness by more than 1e-9;
  // nullopt if rates are fair. Recomputes all loads: O(all uses). Valid after settle().
  std::optional<std::string> unfairness() const;

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // Every push of a changed rate reads and writes only this cache line.
  struct alignas(64) Link {
    double level;                 // rate of its own transfers; infinite if there are none
    double foreign = 0;           // load of foreign transfers, bytes per picosecond
    double own_weight = 0;        // exactly 0 if there are no own transfers
    double fastest_foreign = 0;   // upper bound
    double capacity;              // bytes per picosecond
    double volume = 0;            // integral of the level up to `settled`; 0 without own transfers
    std::int64_t settled = 0;     // instant
    std::uint32_t crossing = 0;   // transfers in its row
    bool is_pushed = false;       // in pushed_
    bool is_touched = false;      // in touched_
    bool is_queued = false;       // in queue_
    std::uint8_t since_scan = 0;  // changes since the foreign load was last summed up
  };

  struct alignas(64) Books {
    double used = 0;         // bytes per picosecond since `since`
    std::int64_t since = 0;  // instant
    double carried = 0;      // bytes, up to `since`
    PooledArray row;         // of Crossing: all transfers over the link, in no order
    PooledArray own;         // of Own: a heap, least key first
    std::uint32_t arriving = 0;
  };

  struct Crossing {
    Slot slot;
    std::uint32_t use;  // position in use_links_
  };

  struct Own {
    double key;  // volume at which the transfer is through
    Slot slot;
    std::uint32_t uses_begin;  // copied from the transfer
    std::uint32_t uses_size;
    bool is_weighted;
  };

  struct Transfer {
    TransferId id;
    double bytes;
    std::uint32_t uses_begin;
    std::uint32_t uses_size;
    LinkId bottleneck;
    std::uint32_t heap_position;
    bool needs_no_time;  // nothing to move, or no link of finite capacity
    bool is_active;
    bool is_weighted;  // some weight is not 1
  };

  struct Arrival {
    TransferId id;
    Slot slot;
  };

  struct Finished {
    TransferId id;
    Slot slot;
    double rate;
    double late;  // its true end minus the instant at which it is taken away, picoseconds
  };

  struct Faster {
    double rate;
    double weight;
    TransferId id;
    Slot slot;
  };

  std::span<const LinkId> links_of(const Transfer& transfer) const {
    return {use_links_.data() + transfer.uses_begin, transfer.uses_size};
  }
  double weight_of(const Transfer& transfer, std::size_t use) const {
    return transfer.is_weighted ? weights_[use] : 1;
  }
  static Own own_entry(double key, Slot slot, const Transfer& transfer) {
    return {key, slot, transfer.uses_begin, transfer.uses_size, transfer.is_weighted};
  }
  double rate_of(const Transfer& transfer) const { return links_[transfer.bottleneck].level; }

  void touch(LinkId index) {
    if (links_[index].is_touched) return;
    links_[index].is_touched = true;
    touched_.push_back(index);
  }
  void settle_volume(Link& link) const {
    if (link.own_weight > 0) link.volume += link.level * static_cast<double>(now_ - link.settled);
    link.settled = now_;
  }

  void admit_arrivals();
  void make_room_for_arrivals();
  void place(Slot slot);
  void leave(const Finished& finished);
  void lose_own(LinkId index, double weight);
  void queue_unless_at_rest(LinkId index);
  void solve();
  void evaluate(LinkId index);
  double capture_faster(LinkId index, double level, double& own_weight);
  void set_level(LinkId index, double level, double own_weight);
  void move_to(LinkId index, double level, const Faster& captured);
  void set_bottleneck(Transfer& transfer, LinkId index);
  void push(const Own& own, double change, double rate);
  void add_up_foreign(LinkId index);
  void refill();
  void fill_from_below();
  void close_books();

  void heap_push(PooledArray& heap, const Own& entry);
  void heap_remove(PooledArray& heap, std::uint32_t position);
  void heap_sift(PooledArray& heap, std::uint32_t position, const Own& entry);

  IdTable<LinkId, Link> links_;  // links, followed by groups
  IdTable<LinkId, Books> books_;
  // The uses of a transfer are a block of exact length in these arrays, that of its bottleneck
  // first. free_uses_ remembers free blocks. Most pushes read only use_links_, so it must be small.
  std::vector<LinkId> use_links_;
  std::vector<std::uint32_t> row_positions_;
  std::vector<double> weights_;                        // empty until a transfer needs them
  std::vector<std::vector<std::uint32_t>> free_uses_;  // by length
  IdTable<Slot, Transfer> transfers_;
  std::vector<Slot> free_slots_;
  ArrayPool<Crossing> rows_;
  ArrayPool<Own> heaps_;
  LevelQueue queue_;
  FinishTree finishes_;

  std::vector<Arrival> arrivals_;  // since the last settle()
  std::vector<LinkId> touched_;    // links whose load, level or own set changed since then
  std::vector<LinkId> pushed_;     // by one evaluation; has room for all links plus one
  std::size_t pushed_count_ = 0;
  std::vector<Faster> faster_;  // of one evaluation: candidates and captured transfers
  std::vector<Faster> captured_;
  std::vector<Finished> finished_;        // of one instant
  std::vector<std::uint32_t> finishing_;  // indices of links, of one instant

  std::int64_t now_ = 0;
  std::size_t active_ = 0;
  std::optional<std::uint64_t> evaluation_limit_;
  std::uint64_t evaluations_ = 0;
  std::uint64_t refills_ = 0;
  std::uint64_t rate_updates_ = 0;
};

}  // namespace stepsim
