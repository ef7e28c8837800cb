// The parts of FairSharing that look at all links: the full refill, which is the fallback of the
// incremental method, and the check that rates are fair.

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

#include "sim/network/fair_sharing.h"

namespace stepsim {
namespace {}  // namespace

void FairSharing::refill() {
  ++refills_;
  // Transfers keep their remaining bytes while no heap holds their keys.
  for (LinkId index(0); index < links_.next(); index = LinkId(index.index() + 1)) {
    Link& link = links_[index];
    settle_volume(link);
    for (const Own& own : heaps_.view(books_[index].own)) {
      transfers_[own.slot].bytes = std::max(own.key - link.volume, 0.0);
    }
    books_[index].own.size = 0;
    link.level = std::numeric_limits<double>::infinity();
    link.own_weight = 0;
    link.volume = 0;
  }
  fill_from_below();
  for (LinkId index(0); index < links_.next(); index = LinkId(index.index() + 1)) {
    if (links_[index].crossing == 0) continue;
    add_up_foreign(index);
    touch(index);
  }
  rate_updates_ += active_;
}

// Progressive filling: all rates rise together. The first link that is full is the bottleneck of
// the transfers over it. They are settled, and the others continue to rise.
void FairSharing::fill_from_below() {
  struct Filling {
    double room;    // capacity minus settled transfers
    double weight;  // of the others
    std::uint32_t rising;
  };
  struct Full {
    double level;
    LinkId index;
  };
  const auto later = [](const Full& a, const Full& b) {
    return std::tuple(a.level, a.index) > std::tuple(b.level, b.index);
  };
  IdTable<LinkId, Filling> filling(links_.size(), Filling{0, 0, 0});
  std::vector<Full> order;
  for (LinkId index(0); index < links_.next(); index = LinkId(index.index() + 1)) {
    filling[index] = {links_[index].capacity, 0, links_[index].crossing};
    for (const Crossing& crossing : rows_.view(books_[index].row)) {
      filling[index].weight += weight_of(transfers_[crossing.slot], crossing.use);
    }
    if (filling[index].rising > 0) {
      order.push_back({filling[index].room / filling[index].weight, index});
    }
  }
  std::make_heap(order.begin(), order.end(), later);
  double lowest = 0;  // levels rise, except for rounding errors
  std::vector<bool> is_settled(transfers_.size(), false);
  while (!order.empty()) {
    const Full next = order.front();
    std::pop_heap(order.begin(), order.end(), later);
    order.pop_back();
    if (filling[next.index].rising == 0) continue;
    // The level of a link only rises while others fill up, so an old entry comes too early.
    const double level = filling[next.index].room / filling[next.index].weight;
    if (level > next.level) {
      order.push_back({level, next.index});
      std::push_heap(order.begin(), order.end(), later);
      continue;
    }
    lowest = std::max(lowest, next.level);
    Link& link = links_[next.index];
    link.level = lowest;
    for (const Crossing& crossing : rows_.view(books_[next.index].row)) {
      if (is_settled[crossing.slot.index()]) continue;
      is_settled[crossing.slot.index()] = true;
      Transfer& transfer = transfers_[crossing.slot];
      set_bottleneck(transfer, next.index);
      link.own_weight += weight_of(transfer, transfer.uses_begin);
      const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
      for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
        Filling& other = filling[use_links_[use]];
        other.room -= weight_of(transfer, use) * lowest;
        other.weight -= weight_of(transfer, use);
        --other.rising;
      }
      heap_push(books_[next.index].own, own_entry(transfer.bytes, crossing.slot, transfer));
    }
  }
}

std::vector<FairSharing::Rate> FairSharing::rates() const {
  std::vector<Rate> rates;
  for (const Transfer& transfer : transfers_) {
    if (transfer.is_active) {
      rates.push_back({transfer.id, rate_of(transfer) * kPicosecondsPerSecond});
    }
  }
  std::sort(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) { return a.id < b.id; });
  return rates;
}

std::optional<std::string> FairSharing::unfairness() const {
  constexpr double kTolerance = 1e-9;
  IdTable<LinkId, double> load(links_.size(), 0.0);
  IdTable<LinkId, double> fastest(links_.size(), 0.0);
  for (const Transfer& transfer : transfers_) {
    if (!transfer.is_active) continue;
    const std::uint32_t end = transfer.uses_begin + transfer.uses_size;
    for (std::uint32_t use = transfer.uses_begin; use < end; ++use) {
      const LinkId index = use_links_[use];
      load[index] += weight_of(transfer, use) * rate_of(transfer);
      fastest[index] = std::max(fastest[index], rate_of(transfer));
    }
  }
  for (LinkId index(0); index < links_.next(); index = LinkId(index.index() + 1)) {
    if (load[index] > links_[index].capacity * (1 + kTolerance)) {
      return "link " + std::to_string(index.index()) + " is overloaded";
    }
  }
  for (const Transfer& transfer : transfers_) {
    if (!transfer.is_active) continue;
    const bool has_bottleneck = [&] {
      for (const LinkId index : links_of(transfer)) {
        if (load[index] >= links_[index].capacity * (1 - kTolerance) &&
            rate_of(transfer) >= fastest[index] * (1 - kTolerance)) {
          return true;
        }
      }
      return false;
    }();
    if (!has_bottleneck) {
      return "transfer " + std::to_string(transfer.id.index()) + " could be faster";
    }
  }
  return std::nullopt;
}

}  // namespace stepsim
