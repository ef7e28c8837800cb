#include "workload/parts/expert_load.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

namespace stepsim {
namespace {

using Rows = std::vector<std::int64_t>;

std::size_t index(std::int64_t expert) {
  return static_cast<std::size_t>(expert);
}

// Adds one row to experts[first + i step] for every i < tokens, modulo the number of experts.
void deal_in_turn(Rows& rows, std::int64_t first, std::int64_t tokens) {
  const auto experts = static_cast<std::int64_t>(rows.size());
  for (std::int64_t& of_expert : rows) of_expert += tokens / experts;
  for (std::int64_t i = 0; i < tokens % experts; ++i) ++rows[index((first + i) % experts)];
}

std::int64_t total(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

// Returns values of the density x^-alpha in [low, high], one an expert.
std::vector<double> draw_shares(std::mt19937_64& random, std::int64_t experts, double alpha,
                                double low, double high) {
  const double power = 1 - alpha;
  const double from = std::pow(low, power);
  const double to = std::pow(high, power);
  std::vector<double> shares(index(experts));
  for (double& share : shares) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    share = std::pow((to - from) * uniform + from, 1 / power);
  }
  return shares;
}

// Gives or takes single rows until there are `wanted`: the emptiest experts get, the fullest give.
void even_out(Rows& rows, std::int64_t wanted, std::int64_t most) {
  std::vector<std::size_t> order(rows.size());
  for (std::int64_t missing = wanted - total(rows); missing != 0; missing = wanted - total(rows)) {
    const bool give = missing > 0;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return give ? rows[a] < rows[b] : rows[a] > rows[b];
    });
    const std::int64_t each =
        std::max<std::int64_t>(1, std::abs(missing) / static_cast<std::int64_t>(rows.size()));
    std::int64_t left = std::abs(missing);
    for (const std::size_t expert : order) {
      const std::int64_t room = give ? most - rows[expert] : rows[expert];
      const std::int64_t moved = std::min({each, room, left});
      rows[expert] += give ? moved : -moved;
      left -= moved;
    }
  }
}

Rows draw_rows(std::mt19937_64& random, const ExpertShare& share, double alpha) {
  const std::int64_t copies = share.tokens * share.top_k;
  const bool few = copies <= share.experts;
  const double high = few ? 2.0 : std::max(1.0, 0.8 * static_cast<double>(share.tokens));
  const std::vector<double> shares =
      draw_shares(random, share.experts, alpha, few ? 0.01 : 1.0, high);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  Rows rows;
  for (const double part : shares) {
    rows.push_back(std::min<std::int64_t>(share.tokens,
                                          std::llround(part / sum * static_cast<double>(copies))));
  }
  even_out(rows, copies, share.tokens);
  return rows;
}

// Returns the rows of the member that has the most.
std::span<const std::int64_t> of_fullest(const Rows& rows, std::int64_t members) {
  const std::size_t each = rows.size() / index(members);
  std::span<const std::int64_t> fullest;
  std::int64_t most = -1;
  for (std::size_t first = 0; first < rows.size(); first += each) {
    const std::span<const std::int64_t> own(rows.data() + first, each);
    const std::int64_t sum = std::accumulate(own.begin(), own.end(), std::int64_t{0});
    if (sum > most) fullest = own;
    most = std::max(most, sum);
  }
  return fullest;
}

void check_share(const ExpertShare& share) {
  assert(share.tokens >= 1 && share.top_k >= 1 && share.top_k <= share.experts);
  assert(share.members >= 1 && share.experts % share.members == 0);
  static_cast<void>(share);
}

}  // namespace

std::vector<std::int64_t> balanced_rows(const ExpertShare& share) {
  check_share(share);
  const std::int64_t stride = (share.experts + share.top_k - 1) / share.top_k;
  Rows rows(index(share.experts));
  for (std::int64_t j = 0; j < share.top_k; ++j) {
    if (share.tokens >= stride) {
      deal_in_turn(rows, j * stride % share.experts, share.tokens);
      continue;
    }
    for (std::int64_t i = 0; i < share.tokens; ++i) {
      ++rows[index((i * stride / share.tokens + j * stride) % share.experts)];
    }
  }
  rows.resize(index(share.experts / share.members));
  return rows;
}

ExpertLoad balanced_load(const ExpertShare& share) {
  return load_of(balanced_rows(share));
}

ExpertLoad power_law_load(const ExpertShare& share, double alpha, int draws) {
  check_share(share);
  assert(alpha > 0 && alpha != 1 && draws >= 1);
  std::mt19937_64 random(5);
  std::vector<ExpertLoad> loads;
  for (int draw = 0; draw < draws; ++draw) {
    const Rows rows = draw_rows(random, share, alpha);
    loads.push_back(load_of(of_fullest(rows, share.members)));
  }
  return mean_of(loads);
}

}  // namespace stepsim
