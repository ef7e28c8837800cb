// Kernels of serving libraries in which the chips of a node read and write each other's memory at
// once, without channels or protocols: all-reduces for small messages, and the two halves of an
// all-to-all of experts for few tokens. Their times are closed forms: a kernel takes all links that
// its chips have, and nothing else runs beside it.
//
//   all-reduce of n chips, S bytes each (vLLM's and SGLang's custom all-reduce, TensorRT-LLM's):
//     one-shot   every chip reads what all others hold and adds it up
//                one_start + one_doubling (log2 n - 1) + (n - 1) S / one_bandwidth
//     two-shot   every chip adds up its part and then reads the others' sums
//                two_start + two_doubling (log2 n - 1) + 2 (n - 1) / n S / two_bandwidth
//     The library takes the shorter one up to `up_to` bytes, and its other all-reduce (NCCL's)
//     beyond
//
//   half of an all-to-all of experts (low-latency kernels of DeepEP: dispatch, combine), of B =
//   tokens x top_k x token_bytes sent by each chip:
//     start + experts x expert_start + max(B / bandwidth, B / (busy units x unit_rate)), where
//     busy units = min(units of the chip, experts x units_of_expert)
//   Over several nodes a copy goes straight to the chip of its expert by RDMA: network_start more,
//   and what leaves the node takes network_fraction of its links
//
//   the same half for many tokens (DeepEP's normal kernels) among the n chips of a node: some units
//   of a chip move tokens, each several at once. A token of b bytes is sent once to each chip that
//   has one of its top_k experts, to c of them on average:
//     c     = n (1 - C(experts - experts/n, top_k) / C(experts, top_k))
//     token = token_time + b / token_rate + c (copy_time + b / copy_rate)
//     units = (tokens / units + tokens_at_once) token
//     links = tokens c b / bandwidth
//     start + (units^4 + links^4)^(1/4)
//
// Not modelled: other traffic inside a node, tokens of unequal experts.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"

namespace stepsim {

// Every field is explained where it is declared for files, in sim/collectives/library_fields.cc
// (`stepsim help library`).
struct DirectAllReduce {
  Bytes up_to{};
  Duration one_start{};
  Duration one_doubling{};
  Bandwidth one_bandwidth{};
  Duration two_start{};
  Duration two_doubling{};
  Bandwidth two_bandwidth{};
};

struct TokenExchange {
  Duration start{};
  Duration expert_start{};
  Bandwidth bandwidth{};
  Bandwidth unit_rate{};
  double units_of_expert = 1;
  std::int64_t up_to_tokens = 0;  // of a chip; 0: any number
  Duration network_start{};
  double network_fraction = 0;  // 0: chips of one node only
};

// Kernels of an exchange for many tokens inside a node.
struct BulkExchange {
  Duration start{};
  double tokens_at_once = 0;  // of a unit
  Duration token_time{};
  Bandwidth token_rate{};
  Duration copy_time{};
  Bandwidth copy_rate{};
  Bandwidth bandwidth{};
  std::int64_t units = 20;  // that the kernel takes; `units` of ExchangedTokens are not asked
};

struct ExchangedTokens {
  std::int64_t tokens = 0;  // of each chip
  std::int64_t top_k = 1;
  std::int64_t experts = 1;  // of all chips
  Bytes token_bytes{};       // of a copy, with its scales
  std::int64_t units = 1;    // of a chip
  std::int64_t chips = 1;    // among which the experts are divided
};

// Returns nullopt if it is more than up_to. REQUIRES: members >= 2; bytes > 0; bandwidths > 0.
std::optional<Duration> time_of_all_reduce(const DirectAllReduce& kernel, std::int64_t members,
                                           Bytes bytes);
// REQUIRES: counts of at least 1; bandwidth, unit_rate and units_of_expert > 0.
Duration time_of_exchange(const TokenExchange& kernel, const ExchangedTokens& sent);
// Likewise; all rates > 0.
Duration time_of_exchange(const BulkExchange& kernel, const ExchangedTokens& sent);
// Returns how many chips get a copy of a token, on average over tokens that choose their experts
// evenly: at most chips and top_k. The chips of `sent` divide the experts evenly, or have one each.
double chips_of_token(const ExchangedTokens& sent);

}  // namespace stepsim
