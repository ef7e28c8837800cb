#include "serving/kv/host_tier.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

void HostTier::keep(Name name) {
  if (empty()) return;
  const auto found = entries_.find(name);
  if (found != entries_.end()) return touch(found->second);
  if (held() == totals_.blocks && !drop_one()) return;
  entries_[name] = {.place = order_.insert(order_.end(), name)};
  ++totals_.written;
  totals_.peak = std::max(totals_.peak, held());
}

bool HostTier::drop_one() {
  const auto victim = std::find_if(order_.begin(), order_.end(),
                                   [this](Name name) { return entries_.at(name).readers == 0; });
  if (victim == order_.end()) return false;
  entries_.erase(*victim);
  order_.erase(victim);
  ++totals_.dropped;
  return true;
}

void HostTier::begin_read(Name name) {
  assert(has(name));
  Entry& entry = entries_.at(name);
  touch(entry);
  ++entry.readers;
  ++copying_;
  ++totals_.read;
}

void HostTier::end_read(Name name) {
  assert(has(name));
  --entries_.at(name).readers;
  --copying_;
}

}  // namespace stepsim
