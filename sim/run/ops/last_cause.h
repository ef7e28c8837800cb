// LastCause decides which of several ops that were posted at one instant, and for which others
// waited, counts as the last: that of the lowest stage, of the lowest program, of the path that
// comes first in CriticalPath::compare(), and then of the lowest rank. The first three look at no
// rank's number, so ranks that do the same at the same time give equal results.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/run/ops/critical_path.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"

namespace stepsim {

class LastCause {
 public:
  LastCause(const Job& job, const Streams& streams, const CriticalPath& path)
      : streams_(streams), path_(path) {
    const auto role_of = [](const RankData& rank) { return std::pair(rank.pp, rank.program); };
    std::vector<std::pair<std::uint32_t, ProgramId>> roles;
    for (const RankData& rank : job.ranks()) {
      if (roles.empty() || roles.back() != role_of(rank)) roles.push_back(role_of(rank));
    }
    std::ranges::sort(roles);
    for (const RankData& rank : job.ranks()) {
      const auto place = std::ranges::lower_bound(roles, role_of(rank));
      roles_.push_back(static_cast<std::uint32_t>(place - roles.begin()));
    }
  }

  // Returns whether `a` rather than `b` is the last. REQUIRES: both run, posted at one instant.
  bool precedes(RankStreamId a, RankStreamId b) const {
    const RankId first = streams_.rank_of(a);
    const RankId second = streams_.rank_of(b);
    const std::uint32_t role = roles_[first.index()];
    const std::uint32_t other = roles_[second.index()];
    if (role != other) return role < other;
    const int order = path_.compare(a, b);
    return order != 0 ? order < 0 : first < second;
  }

 private:
  const Streams& streams_;
  const CriticalPath& path_;
  std::vector<std::uint32_t> roles_;  // by simulated rank: in order of stage and program
};

}  // namespace stepsim
