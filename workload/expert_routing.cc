#include "workload/expert_routing.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace stepsim {
namespace {

// The largest numbers of a routing. Their product takes seconds at most, and its matrix 128 MiB.
constexpr std::uint32_t kMostMembers = 4096;
constexpr std::uint32_t kMostExperts = 4096;
constexpr std::uint32_t kMostTopK = 128;
constexpr std::int64_t kMostTokens = 1 << 27;
constexpr std::int64_t kMostBytesSent = std::int64_t{1} << 44;  // from a member

using Polynomial = std::vector<double>;  // by power of x, up to top_k

// Coefficients by nodes used (power of y) and experts chosen (power of x).
using Table = std::vector<Polynomial>;

// The law of a token's experts, by the weights of all experts.
class Law {
 public:
  Law(const ExpertRouting& routing, std::vector<double> weights)
      : k_(routing.top_k), weights_(std::move(weights)) {
    const std::uint32_t members_of_node =
        routing.members_of_node == 0 ? routing.members : routing.members_of_node;
    const std::uint32_t of_member = routing.experts / routing.members;
    of_node_ = members_of_node * of_member;
    const std::uint32_t nodes = routing.experts / of_node_;
    limit_ = std::min(nodes, k_);
    if (routing.node_limit != 0) limit_ = std::min(limit_, routing.node_limit);
    std::vector<Table> before = {nothing()};
    std::vector<Table> after = {nothing()};
    for (std::uint32_t node = 0; node < nodes; ++node) {
      nodes_.push_back(product(node * of_node_, (node + 1) * of_node_, 0, 0));
      before.push_back(times(before.back(), with_node(nodes_.back())));
    }
    for (std::uint32_t node = nodes; node-- > 0;) {
      after.push_back(times(after.back(), with_node(nodes_[node])));
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      others_.push_back(times(before[node], after[nodes - 1 - node]));
    }
    all_ = sum_with(0, nodes_[0]);
  }

  // Probability that a token goes to any of experts [begin, end), all of one node.
  double reaches(std::uint32_t begin, std::uint32_t end) const {
    const std::uint32_t node = begin / of_node_;
    const Polynomial without = product(node * of_node_, (node + 1) * of_node_, begin, end);
    return 1 - sum_with(node, without) / all_;
  }

  // Sets the share of each expert's copies that its capacity lets through; the rest never arrives.
  void drop(std::vector<double> kept) { kept_ = std::move(kept); }

 private:
  Table nothing() const {
    Table table(limit_ + 1, Polynomial(k_ + 1, 0));
    table[0][0] = 1;
    return table;
  }

  // The product over experts [begin, end) except [skip_begin, skip_end), without dropped copies.
  Polynomial product(std::uint32_t begin, std::uint32_t end, std::uint32_t skip_begin,
                     std::uint32_t skip_end) const {
    Polynomial result(k_ + 1, 0);
    result[0] = 1;
    for (std::uint32_t expert = begin; expert < end; ++expert) {
      double weight = weights_[expert];
      if (expert >= skip_begin && expert < skip_end) {
        if (kept_.empty() || kept_[expert] == 1) continue;
        weight *= 1 - kept_[expert];
      }
      for (std::uint32_t power = k_; power > 0; --power) {
        result[power] += weight * result[power - 1];
      }
    }
    return result;
  }

  Table with_node(const Polynomial& experts) const {
    Table table = nothing();
    for (std::uint32_t power = 1; power <= k_; ++power) table[1][power] = experts[power];
    return table;
  }

  Table times(const Table& a, const Table& b) const {
    Table result(limit_ + 1, Polynomial(k_ + 1, 0));
    for (std::uint32_t j = 0; j <= limit_; ++j) {
      for (std::uint32_t other = 0; j + other <= limit_; ++other) {
        for (std::uint32_t power = 0; power <= k_; ++power) {
          for (std::uint32_t rest = 0; power + rest <= k_; ++rest) {
            result[j + other][power + rest] += a[j][power] * b[other][rest];
          }
        }
      }
    }
    return result;
  }

  // The weight of all sets of k experts when a node's experts are these.
  double sum_with(std::uint32_t node, const Polynomial& experts) const {
    double sum = 0;
    for (std::uint32_t used = 0; used <= limit_; ++used) {
      sum += others_[node][used][k_];
      if (used == limit_) break;
      for (std::uint32_t power = 1; power <= k_; ++power) {
        sum += others_[node][used][k_ - power] * experts[power];
      }
    }
    return sum;
  }

  std::uint32_t k_;
  std::uint32_t limit_ = 0;    // of nodes
  std::uint32_t of_node_ = 0;  // experts
  std::vector<double> weights_;
  std::vector<double> kept_{};  // by expert; empty: all
  std::vector<Polynomial> nodes_;
  std::vector<Table> others_;  // by node: all but it
  double all_ = 0;
};

std::vector<double> shares(const ExpertRouting& routing, const Law& law) {
  std::vector<double> result(routing.experts);
  for (std::uint32_t expert = 0; expert < routing.experts; ++expert) {
    result[expert] = law.reaches(expert, expert + 1);
  }
  return result;
}

// Fit is a law and how far the share of an expert under it is from its load, relative to it.
struct Fit {
  Law law;
  double farthest = 0;
};

// Returns the share of the tokens that each expert wants.
std::vector<double> wanted_shares(const ExpertRouting& routing) {
  const double sum = std::accumulate(routing.load.begin(), routing.load.end(), 0.0);
  std::vector<double> wanted(routing.experts);
  for (std::uint32_t expert = 0; expert < routing.experts; ++expert) {
    wanted[expert] = routing.top_k * routing.load[expert] / sum;
  }
  return wanted;
}

// Corrects each weight by the ratio of the odds to the power of `speed`, until all are right. Ends
// early if a weight leaves the range of numbers.
Fit corrected(const ExpertRouting& routing, double speed, int most_corrections) {
  constexpr double kClose = 1e-10;
  const std::vector<double> wanted = wanted_shares(routing);
  const auto odds = [](double share) { return share / (1 - share); };
  std::vector<double> weights(routing.experts);
  std::ranges::transform(wanted, weights.begin(), odds);
  double farthest = 0;
  for (int correction = 0; correction < most_corrections; ++correction) {
    const std::vector<double> is = shares(routing, Law(routing, weights));
    farthest = 0;
    for (std::uint32_t expert = 0; expert < routing.experts; ++expert) {
      if (wanted[expert] == 0) continue;
      const double off = std::abs(is[expert] / wanted[expert] - 1);
      if (!std::isfinite(off))
        return {Law(routing, wanted), std::numeric_limits<double>::infinity()};
      farthest = std::max(farthest, off);
      const double ratio = odds(wanted[expert]) / odds(is[expert]);
      weights[expert] *= speed == 1 ? ratio : std::pow(ratio, speed);
    }
    if (farthest < kClose) break;
    // Only ratios count: the mean stays 1, so that products stay in range.
    const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / routing.experts;
    for (double& weight : weights) weight /= mean;
  }
  return {Law(routing, std::move(weights)), farthest};
}

constexpr double kFits = 1e-3;

// Weights under which each expert gets its share: the odds of a share grow with its weight. Whole
// corrections are too large where a token goes to few nodes, because the odds of a node grow with
// the power of top_k, and where there are two experts to choose from, because both are corrected.
Fit fitted(const ExpertRouting& routing) {
  constexpr int kMostCorrections = 200;
  if (routing.load.empty() || routing.top_k == routing.experts) {
    return {Law(routing, std::vector<double>(routing.experts, 1.0))};
  }
  Fit fit = corrected(routing, 1, kMostCorrections);
  if (fit.farthest < kFits) return fit;
  return corrected(routing, 0.5 / routing.top_k, 10 * kMostCorrections);
}

ByteMatrix transposed(const ByteMatrix& matrix) {
  ByteMatrix result = matrix;
  for (std::uint32_t source = 0; source < matrix.members; ++source) {
    for (std::uint32_t to = 0; to < matrix.members; ++to) {
      result.bytes[std::size_t{to} * matrix.members + source] = matrix.between(source, to);
    }
  }
  if (matrix.sharing == NodeSharing::kToNode) result.sharing = NodeSharing::kFromNode;
  return result;
}

}  // namespace

std::string_view name_of(TokenCopies copies) {
  constexpr std::array<std::string_view, 3> kNames = {"expert", "member", "node"};
  return kNames[static_cast<std::size_t>(copies)];
}

std::vector<Problem> check(const ExpertRouting& routing) {
  std::vector<Problem> problems;
  const auto add = [&problems](const char* field, std::string message) {
    problems.push_back({field, std::move(message)});
  };
  const auto text = [](auto value) { return std::to_string(value); };
  const bool deals_out =
      routing.members > 0 && routing.experts > 0 && routing.experts % routing.members == 0;
  if (!deals_out) {
    add("experts", "must be a multiple of the " + text(routing.members) + " members, is " +
                       text(routing.experts));
  }
  if (routing.members > kMostMembers) {
    add("members", "must be at most " + text(kMostMembers) + ", are " + text(routing.members));
  }
  if (routing.experts > kMostExperts) {
    add("experts", "must be at most " + text(kMostExperts) + ", is " + text(routing.experts));
  }
  const std::uint32_t most_top_k = std::min(routing.experts, kMostTopK);
  if (routing.top_k < 1 || routing.top_k > most_top_k) {
    add("top_k", "must be 1 to " +
                     (most_top_k == kMostTopK ? text(kMostTopK)
                                              : "the " + text(routing.experts) + " experts") +
                     ", is " + text(routing.top_k));
  }
  if (routing.tokens < 1 || routing.tokens > kMostTokens) {
    add("tokens", "must be 1 to " + text(kMostTokens) + ", is " + text(routing.tokens));
  }
  if (!(routing.capacity_factor >= 0) || !std::isfinite(routing.capacity_factor)) {
    add("capacity_factor", "must be 0 (no limit) or more, is " + text(routing.capacity_factor));
  }
  if (routing.token_bytes < Bytes(1)) {
    add("token_bytes", "must be at least 1, is " + text(routing.token_bytes.value()));
  } else if (static_cast<double>(routing.tokens) * routing.top_k *
                 static_cast<double>(routing.token_bytes.value()) >
             static_cast<double>(kMostBytesSent)) {
    add("token_bytes", "x tokens x top_k must be at most 16 TiB, is " +
                           text(routing.token_bytes.value()) + " x " + text(routing.tokens) +
                           " x " + text(routing.top_k));
  }
  const std::uint32_t of_node = routing.members_of_node;
  if (of_node != 0 && routing.members % of_node != 0) {
    add("members_of_node",
        "must divide the " + text(routing.members) + " members, is " + text(of_node));
  }
  if (of_node == 0 && (routing.node_limit != 0 || routing.copies == TokenCopies::kPerNode)) {
    add("members_of_node", "must be given for a node limit or a copy a node");
  }
  if (routing.node_limit != 0 && of_node != 0 && deals_out &&
      routing.top_k > routing.node_limit * of_node * (routing.experts / routing.members)) {
    add("node_limit", "must leave room for " + text(routing.top_k) + " experts, is " +
                          text(routing.node_limit) + " nodes of " +
                          text(of_node * (routing.experts / routing.members)));
  }
  if (!routing.load.empty()) {
    if (routing.load.size() != routing.experts) {
      add("load", "must have a number for each of the " + text(routing.experts) + " experts, has " +
                      text(routing.load.size()));
      return problems;
    }
    const double sum = std::accumulate(routing.load.begin(), routing.load.end(), 0.0);
    for (std::size_t expert = 0; expert < routing.load.size(); ++expert) {
      const double load = routing.load[expert];
      if (!std::isfinite(load) || load < 0) {
        add("load", "must be 0 or more, is " + text(load) + " of expert " + text(expert));
      } else if (load * routing.top_k >= sum && routing.top_k < routing.experts) {
        add("load",
            "must be less than 1 of top_k of the sum, as a token goes to an expert once; "
            "is " +
                text(load) + " of " + text(sum) + " for expert " + text(expert));
      }
    }
  }
  if (problems.empty() && routing.node_limit != 0 && !(fitted(routing).farthest < kFits)) {
    add("node_limit", "is " + text(routing.node_limit) +
                          ", with which experts cannot be chosen as often as `load` says: a larger "
                          "limit, none, or a more even load");
  }
  return problems;
}

ExpertTraffic route_tokens(const ExpertRouting& routing) {
  assert(check(routing).empty());
  Law law = fitted(routing).law;
  const std::uint32_t members = routing.members;
  const std::uint32_t of_member = routing.experts / members;
  const std::vector<double> chosen = shares(routing, law);
  std::vector<double> share = chosen;
  const double tokens = static_cast<double>(members) * static_cast<double>(routing.tokens);
  if (routing.capacity_factor > 0) {
    const double most =
        std::ceil(routing.capacity_factor * tokens * routing.top_k / routing.experts) / tokens;
    std::vector<double> kept;
    for (double& of_expert : share) {
      kept.push_back(of_expert > most ? most / of_expert : 1);
      of_expert = std::min(of_expert, most);
    }
    law.drop(std::move(kept));
  }
  const auto bytes = [&](double copies_of_token) {
    return Bytes(std::llround(copies_of_token * static_cast<double>(routing.tokens) *
                              static_cast<double>(routing.token_bytes.value())));
  };

  ExpertTraffic traffic;
  for (const double of_expert : share) {
    traffic.tokens_of_expert.push_back(of_expert * tokens);
  }
  traffic.dropped = (std::accumulate(chosen.begin(), chosen.end(), 0.0) -
                     std::accumulate(share.begin(), share.end(), 0.0)) *
                    tokens;
  ByteMatrix& dispatch = traffic.dispatch;
  dispatch.members = members;
  std::vector<Bytes> to_member;
  for (std::uint32_t member = 0; member < members; ++member) {
    const std::uint32_t first = member * of_member;
    const bool every_copy = routing.copies == TokenCopies::kPerExpert;
    to_member.push_back(bytes(
        every_copy ? std::accumulate(share.begin() + first, share.begin() + first + of_member, 0.0)
                   : law.reaches(first, first + of_member)));
  }
  for (std::uint32_t source = 0; source < members; ++source) {
    dispatch.bytes.insert(dispatch.bytes.end(), to_member.begin(), to_member.end());
  }
  if (routing.copies == TokenCopies::kPerNode) {
    dispatch.sharing = NodeSharing::kToNode;
    const std::uint32_t of_node = routing.members_of_node;
    std::vector<Bytes> to_node;
    for (std::uint32_t first = 0; first < members; first += of_node) {
      to_node.push_back(bytes(law.reaches(first * of_member, (first + of_node) * of_member)));
    }
    for (std::uint32_t member = 0; member < members; ++member) {
      dispatch.node_of.push_back(member / of_node);
      dispatch.shared.insert(dispatch.shared.end(), to_node.begin(), to_node.end());
    }
  }
  traffic.combine = transposed(dispatch);
  return traffic;
}

}  // namespace stepsim
