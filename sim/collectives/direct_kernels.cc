#include "sim/collectives/direct_kernels.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/base/overlapped.h"

namespace stepsim {
namespace {

// Units and links hide each other but for a fifth where both take equally long. Fitted with the
// constants of BulkExchange (scripts/fit_direct_kernels.py).
constexpr int kUnitsAndLinks = 4;

}  // namespace

std::optional<Duration> time_of_all_reduce(const DirectAllReduce& kernel, std::int64_t members,
                                           Bytes bytes) {
  assert(members >= 2 && bytes > Bytes(0));
  if (bytes > kernel.up_to) return std::nullopt;
  const auto n = static_cast<double>(members);
  const double size = static_cast<double>(bytes.value());
  const double doublings = std::log2(n) - 1;
  const double one = to_seconds(kernel.one_start) + doublings * to_seconds(kernel.one_doubling) +
                     (n - 1) * size / kernel.one_bandwidth.value();
  const double two = to_seconds(kernel.two_start) + doublings * to_seconds(kernel.two_doubling) +
                     2 * (n - 1) / n * size / kernel.two_bandwidth.value();
  return duration_from_seconds(std::min(one, two));
}

Duration time_of_exchange(const TokenExchange& kernel, const ExchangedTokens& sent) {
  assert(sent.experts >= 1 && sent.top_k >= 1 && sent.units >= 1);
  const auto experts = static_cast<double>(sent.experts);
  const double bytes = static_cast<double>(sent.tokens) * static_cast<double>(sent.top_k) *
                       static_cast<double>(sent.token_bytes.value());
  const double busy = std::min(static_cast<double>(sent.units), experts * kernel.units_of_expert);
  const double moved = bytes / std::min(kernel.bandwidth.value(), busy * kernel.unit_rate.value());
  return kernel.start + duration_from_seconds(experts * to_seconds(kernel.expert_start) + moved);
}

double chips_of_token(const ExchangedTokens& sent) {
  const auto experts = static_cast<double>(sent.experts);
  const auto chips = static_cast<double>(sent.chips);
  const double of_chip = std::max(1.0, experts / chips);
  double none = 1;  // chance that no expert of a chip is chosen
  for (std::int64_t i = 0; i < sent.top_k && none > 0; ++i) {
    const double left = experts - static_cast<double>(i);
    none *= std::max(0.0, left - of_chip) / std::max(1.0, left);
  }
  return chips * (1 - none);
}

Duration time_of_exchange(const BulkExchange& kernel, const ExchangedTokens& sent) {
  assert(sent.experts >= 1 && sent.top_k >= 1 && sent.chips >= 1 && kernel.units >= 1);
  const double copies = chips_of_token(sent);
  const auto tokens = static_cast<double>(sent.tokens);
  const auto bytes = static_cast<double>(sent.token_bytes.value());
  const double token = to_seconds(kernel.token_time) + bytes / kernel.token_rate.value() +
                       copies * (to_seconds(kernel.copy_time) + bytes / kernel.copy_rate.value());
  const double units = (tokens / static_cast<double>(kernel.units) + kernel.tokens_at_once) * token;
  const double links = tokens * copies * bytes / kernel.bandwidth.value();
  return kernel.start + duration_from_seconds(overlapped<kUnitsAndLinks>(units, links));
}

}  // namespace stepsim
