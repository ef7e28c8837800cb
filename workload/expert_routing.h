// Expert routing says how many bytes a mixture-of-experts layer sends from each member to each
// other. Every token of every member goes to `top_k` different experts. Members hold the experts in
// order, the same number each. The result is an expectation, not a drawn sample: it is the same for
// every token, layer and run.
//
//   const ExpertTraffic traffic = route_tokens({.members = 64, .experts = 256, .top_k = 8,
//                                               .tokens = 4096, .token_bytes = Bytes(14336),
//                                               .copies = TokenCopies::kPerNode,
//                                               .members_of_node = 8, .node_limit = 4});
//   graph.byte_matrices = {traffic.dispatch, traffic.combine};
//
// The law of a token's experts: each set of top_k experts, on at most node_limit nodes, is as
// likely as the product of the weights of its experts. With equal weights all sets are alike, so
// that a node of m of the E experts is missed with probability C(E-m, k) / C(E, k); for many
// experts that is FORMULAS C8's (1 - m/E)^k. Where `load` is given the weights are found for which
// each expert gets that share of the tokens. All of it is exact, by generating functions: a node of
// experts is the polynomial prod (1 + w x), a set of k experts on j nodes is the term x^k y^j of
// prod over nodes (1 + y (prod (1 + w x) - 1)).
//
// A capacity limits an expert to so many times its even share of all members' tokens. The copies
// beyond that are dropped before they are sent; each copy is equally likely to be dropped.
//
// Loads that differ from token to token or from source to source are not modelled; give a matrix of
// your own for them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/collectives/byte_matrix.h"

namespace stepsim {

enum class TokenCopies : std::uint8_t {
  kPerExpert,  // a copy of the token for each of its experts
  kPerMember,  // one for each member that has any of them
  kPerNode,    // one for each node that has any; handed on inside it (a member each)
};
std::string_view name_of(TokenCopies copies);  // "expert", "member", "node"

struct ExpertRouting {
  std::uint32_t members = 1;
  std::uint32_t experts = 1;  // a multiple of members
  std::uint32_t top_k = 1;
  std::int64_t tokens = 0;  // that each member sends
  Bytes token_bytes{};
  std::vector<double> load{};  // by expert, in any unit: share of the tokens; empty: equal
  TokenCopies copies = TokenCopies::kPerMember;
  std::uint32_t members_of_node = 0;  // members [i m, (i + 1) m) are node i; 0: all are one node
  std::uint32_t node_limit = 0;       // a token goes to at most so many nodes; 0: to any
  // An expert takes at most this many times tokens x top_k / experts; 0: all that come.
  double capacity_factor = 0;
};

struct ExpertTraffic {
  ByteMatrix dispatch;                   // tokens to their experts
  ByteMatrix combine;                    // and back: the transposed matrix
  std::vector<double> tokens_of_expert;  // from all members, without those that were dropped
  double dropped = 0;                    // copies dropped, out of members x tokens x top_k
};

// Every problem, field by field: "experts", "load".
std::vector<Problem> check(const ExpertRouting& routing);

// REQUIRES: check(routing) is empty. O(experts x top_k x nodes + members^2).
ExpertTraffic route_tokens(const ExpertRouting& routing);

}  // namespace stepsim
