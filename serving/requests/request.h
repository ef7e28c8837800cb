// Request is one question to a served model: when it comes, how long it is, how many tokens are
// answered. A RequestList is everything that is asked of a system, in values.
//
// Tokens have no text. Two requests of one prefix begin with the same `prefix_tokens` tokens (those
// that both have); everything behind them is a request's own. Where prefixes branch, a request has
// a chain: each of its pieces is named by its own tokens and all before them, so requests share the
// pieces up to the first that differs, within `prefix_tokens`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

using RequestId = Id<struct RequestTag>;  // position in RequestList::requests
using PrefixId = Id<struct PrefixTag>;    // a beginning that several requests share
using TenantId = Id<struct TenantTag>;    // position in RequestList::tenants

// The largest numbers of tokens and requests, so that sums stay exact.
inline constexpr std::int32_t kMostRequestTokens = 1 << 24;
inline constexpr std::int64_t kMostRequests = 20'000'000;

struct PromptChain {
  std::vector<PrefixId> pieces{};
  std::int32_t piece_tokens = 1;

  // Returns the piece that has this token, counted from 0; the last for those behind it.
  PrefixId piece_of(std::int64_t token) const {
    const auto piece = static_cast<std::size_t>(token / piece_tokens);
    return pieces[piece < pieces.size() ? piece : pieces.size() - 1];
  }
};

struct Request {
  Time arrival{};  // of a closed loop: unused, the request comes when another has ended
  std::int32_t input_tokens = 1;
  std::int32_t output_tokens = 1;
  std::int32_t prefix_tokens = 0;  // at most input_tokens
  PrefixId prefix{};               // only with prefix_tokens
  std::uint32_t chain = 0;  // 1 + position in RequestList::chains, in place of prefix; 0: none
  TenantId tenant{};
  std::int32_t priority = 0;  // lower ones go first where the engine has priorities
};

// ClosedLoop keeps so many requests of a tenant in the system: at first the first ones, and another
// whenever one has ended, `think` later.
struct ClosedLoop {
  std::int64_t concurrency = 1;
  Duration think{};
};

struct Tenant {
  std::string name;
  std::uint32_t model = 0;           // that it asks, of a system with several
  std::optional<ClosedLoop> loop{};  // unset: its requests come when they come
};

struct RequestList {
  std::vector<Request> requests;  // of one tenant in the order in which they come
  std::vector<Tenant> tenants;
  std::vector<PromptChain> chains{};

  std::size_t model_of(const Request& request) const {
    return tenants[request.tenant.index()].model;
  }
};

}  // namespace stepsim
