#include "serving/replica_router.h"

#include <array>

namespace stepsim {

std::string_view name_of(RouterPolicy policy) {
  constexpr std::array<std::string_view, kRouterPolicies> kNames = {"round-robin", "least-tokens",
                                                                    "prefix-aware"};
  return kNames[static_cast<std::size_t>(policy)];
}

std::size_t ReplicaRouter::choose(RequestId request, std::span<Replica* const> replicas) {
  if (policy_ == RouterPolicy::kRoundRobin) return next_++ % replicas.size();
  std::size_t best = 0;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const Replica& replica = *replicas[i];
    std::int64_t tokens = replica.prompt_tokens;
    if (policy_ == RouterPolicy::kPrefixAware) {
      const KvPool::Hits hits = replica.state().find_hits(request);
      tokens -= (std::int64_t{hits.blocks} + hits.behind) * replica.state().kv().block_tokens();
    }
    if (i > 0 && tokens >= least) continue;
    best = i;
    least = tokens;
  }
  return best;
}

}  // namespace stepsim
