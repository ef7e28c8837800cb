#include "sim/network/latency_bandwidth_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace stepsim {
namespace {

// An event is the end of a transfer's latency or of the transfer. Events are taken in order of
// time, then id, so that carried bytes are summed in the same order for any order of calls.
class LatencyBandwidthNetwork final : public Network {
 public:
  explicit LatencyBandwidthNetwork(const Fabric& fabric)
      : fabric_(fabric), loads_(fabric.links_and_groups()) {}

  void start(Time now, TransferId id, const Transfer& transfer) override {
    const std::uint32_t slot = take_slot();
    Moving& moving = slots_[slot];
    moving.bandwidth = Bandwidth(std::numeric_limits<double>::infinity());
    moving.bytes = transfer.bytes;
    moving.uses.assign(transfer.uses.begin(), transfer.uses.end());
    moving.is_active = false;
    for (std::size_t i = 0; i < transfer.uses.size(); ++i) {
      LinkUse use = transfer.uses[i];
      if (!transfer.alone.empty()) use.weight = transfer.alone[i];
      assert(use.weight > 0 && use.weight <= 1);
      moving.bandwidth = std::min(moving.bandwidth, fabric_.width(use));
    }
    push({now + transfer.latency, id, slot});
  }

  void settle(Time) override {}

  std::optional<Time> next_event() const override {
    if (events_.empty()) return std::nullopt;
    return events_.front().at;
  }

  void advance(Time to, std::vector<TransferId>& done) override {
    assert(to == next_event());
    const std::size_t first_done = done.size();
    while (!events_.empty() && events_.front().at == to) {
      const Event event = events_.front();
      std::pop_heap(events_.begin(), events_.end(), Later{});
      events_.pop_back();
      Moving& moving = slots_[event.slot];
      if (moving.is_active) {
        end(to, moving);
      } else if (needs_no_time(moving)) {
        pass(moving);
      } else {
        begin(to, moving);
        push({moving.end, event.id, event.slot});
        continue;
      }
      done.push_back(event.id);
      free_slots_.push_back(event.slot);
    }
    std::sort(done.begin() + static_cast<std::ptrdiff_t>(first_done), done.end());
    transfers_ += done.size() - first_done;
  }

  double carried(LinkId link, Time at) const override {
    return bytes_over(fabric_, link, [&](LinkId id) {
      const Load& load = loads_[id.index()];
      return load.carried + load.rate * to_picoseconds(at - load.since);
    });
  }

  NetworkStatistics statistics() const override { return {.transfers = transfers_}; }

 private:
  struct Moving {
    Bandwidth bandwidth;
    Bytes bytes;
    Time end;         // valid while active
    double late = 0;  // exact end minus `end`, in picoseconds
    bool is_active = false;
    std::vector<LinkUse> uses;
  };

  struct Load {
    double rate = 0;     // bytes per picosecond
    double carried = 0;  // bytes, up to `since`
    Time since;
    std::uint32_t active = 0;
  };

  struct Event {
    Time at;
    TransferId id;
    std::uint32_t slot;
  };

  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.id > b.id;
    }
  };

  static double to_picoseconds(Duration duration) { return static_cast<double>(duration.count()); }

  static double rate_of(const Moving& moving) {
    return moving.bandwidth.value() / kPicosecondsPerSecond;
  }

  static bool needs_no_time(const Moving& moving) {
    return moving.bytes <= Bytes(0) || std::isinf(moving.bandwidth.value());
  }

  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.push_back({});
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  void push(const Event& event) {
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end(), Later{});
  }

  void bring_up_to(Time now, Load& load) {
    load.carried += load.rate * to_picoseconds(now - load.since);
    load.since = now;
  }

  void pass(const Moving& moving) {
    for (const LinkUse& use : moving.uses) {
      loads_[use.link.index()].carried += use.weight * static_cast<double>(moving.bytes.value());
    }
  }

  void begin(Time now, Moving& moving) {
    const Duration length = moving.bytes / moving.bandwidth;
    const double exact = static_cast<double>(moving.bytes.value()) / rate_of(moving);
    moving.is_active = true;
    moving.end = now + length;
    moving.late = exact - to_picoseconds(length);
    for (const LinkUse& use : moving.uses) {
      Load& load = loads_[use.link.index()];
      bring_up_to(now, load);
      load.rate += use.weight * rate_of(moving);
      ++load.active;
    }
  }

  void end(Time now, const Moving& moving) {
    for (const LinkUse& use : moving.uses) {
      Load& load = loads_[use.link.index()];
      bring_up_to(now, load);
      load.carried += use.weight * rate_of(moving) * moving.late;
      load.rate -= use.weight * rate_of(moving);
      if (--load.active == 0) load.rate = 0;
    }
  }

  const Fabric& fabric_;
  std::vector<Load> loads_;  // by LinkId, then by group
  std::vector<Moving> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Event> events_;  // a heap, earliest on top
  std::uint64_t transfers_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_latency_bandwidth_network(const Fabric& fabric) {
  return std::make_unique<LatencyBandwidthNetwork>(fabric);
}

}  // namespace stepsim
