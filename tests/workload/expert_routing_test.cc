#include "workload/expert_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepsim {
namespace {

ExpertRouting deepseek() {  // 64-way EP of 256 experts on 8 nodes, 8 experts a token
  return {.members = 64,
          .experts = 256,
          .top_k = 8,
          .tokens = 4096,
          .token_bytes = Bytes(14'336),
          .copies = TokenCopies::kPerNode,
          .members_of_node = 8};
}
constexpr double kTokens = 4096.0 * 14'336;  // bytes of a member's tokens

double ways(int of, int chosen) {  // C(of, chosen)
  double result = 1;
  for (int i = 0; i < chosen; ++i) result *= static_cast<double>(of - i) / (i + 1);
  return result;
}

double copies(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kTokens;
}

// A node of 32 of the 256 experts is missed with probability C(224, 8) / C(256, 8) = 0.338: of 8
// nodes 5.29 are reached. With replacement (FORMULAS C8, S25) it would be (7/8)^8, 5.25 of 8.
TEST(ExpertRoutingTest, EqualExpertsAreMissedAsSetsAre) {
  const ExpertTraffic traffic = route_tokens(deepseek());
  const double reached = 1 - ways(224, 8) / ways(256, 8);
  EXPECT_NEAR(copies(traffic.dispatch.between_node(5, 3)), reached, 1e-7);
  EXPECT_NEAR(8 * reached, 5.295, 0.001);
  EXPECT_NEAR(copies(traffic.dispatch.between(0, 63)), 1 - ways(252, 8) / ways(256, 8), 1e-7);
  for (const double tokens : traffic.tokens_of_expert) {
    EXPECT_NEAR(tokens, 64 * 4096 * 8 / 256.0, 1e-6);
  }
  EXPECT_EQ(traffic.dispatch.node_of[8], 1U);
  EXPECT_EQ(traffic.combine.sharing, NodeSharing::kFromNode);
  EXPECT_EQ(traffic.combine.between_node(5, 3), traffic.dispatch.between_node(5, 3));
}

// Every copy: k tokens leave for each, whatever the nodes.
TEST(ExpertRoutingTest, ACopyForEachExpertIsTopKCopiesOfAToken) {
  ExpertRouting routing = deepseek();
  routing.copies = TokenCopies::kPerExpert;
  const ExpertTraffic traffic = route_tokens(routing);
  double sum = 0;
  for (std::uint32_t to = 0; to < 64; ++to) sum += copies(traffic.dispatch.between(7, to));
  EXPECT_NEAR(sum, 8, 1e-6);
  EXPECT_EQ(traffic.dispatch.sharing, NodeSharing::kNone);
}

// Sets of 8 experts on exactly j of 8 nodes: C(8, j) times those of 32 j that use all j, by
// inclusion and exclusion. At most 4 nodes: 3.9 on average, and no more than 4.
TEST(ExpertRoutingTest, ANodeLimitHolds) {
  ExpertRouting routing = deepseek();
  routing.node_limit = 4;
  double all = 0;
  double nodes = 0;
  for (int used = 1; used <= 4; ++used) {
    double sets = 0;
    for (int i = 0; i <= used; ++i) {
      sets += (i % 2 == 0 ? 1 : -1) * ways(used, i) * ways(32 * (used - i), 8);
    }
    all += ways(8, used) * sets;
    nodes += used * ways(8, used) * sets;
  }
  const ExpertTraffic traffic = route_tokens(routing);
  EXPECT_NEAR(8 * copies(traffic.dispatch.between_node(0, 1)), nodes / all, 1e-6);
  EXPECT_GT(nodes / all, 3.8);
  EXPECT_LT(nodes / all, 4);
  EXPECT_NEAR(traffic.tokens_of_expert[17], 64 * 4096 * 8 / 256.0, 1e-6);
}

TEST(ExpertRoutingTest, ExpertsGetTheLoadTheyAreGiven) {
  for (const std::uint32_t limit : {0U, 4U}) {
    ExpertRouting routing = deepseek();
    routing.node_limit = limit;
    for (std::uint32_t expert = 0; expert < 256; ++expert) {
      routing.load.push_back(expert < 4 ? 5.0 : expert == 200 ? 0.0 : 1.0);
    }
    const double sum = std::accumulate(routing.load.begin(), routing.load.end(), 0.0);
    const ExpertTraffic traffic = route_tokens(routing);
    for (std::uint32_t expert = 0; expert < 256; ++expert) {
      EXPECT_NEAR(traffic.tokens_of_expert[expert], 64 * 4096 * 8 * routing.load[expert] / sum,
                  1e-3)
          << expert;
    }
    // The member of the hot experts gets more, and so does its node.
    EXPECT_GT(traffic.dispatch.between(1, 0), 2 * traffic.dispatch.between(1, 1));
    EXPECT_GT(traffic.dispatch.between_node(1, 0), traffic.dispatch.between_node(1, 1));
  }
}

// All six experts of a token stand in one of two nodes. A weight that is a little too large then
// counts six times.
TEST(ExpertRoutingTest, LoadsAreMetWhereATokenStaysInANode) {
  ExpertRouting routing{.members = 8,
                        .experts = 32,
                        .top_k = 6,
                        .tokens = 1000,
                        .token_bytes = Bytes(1000),
                        .copies = TokenCopies::kPerNode,
                        .members_of_node = 4,
                        .node_limit = 1};
  for (std::uint32_t expert = 0; expert < 32; ++expert) {
    routing.load.push_back(expert % 3 == 0 || expert < 10 ? 3.0 : 2.0);
  }
  const double sum = std::accumulate(routing.load.begin(), routing.load.end(), 0.0);
  EXPECT_EQ(check(routing), std::vector<Problem>{});
  const ExpertTraffic traffic = route_tokens(routing);
  for (std::uint32_t expert = 0; expert < 32; ++expert) {
    EXPECT_NEAR(traffic.tokens_of_expert[expert], 8 * 1000 * 6 * routing.load[expert] / sum, 0.01);
  }
}

TEST(ExpertRoutingTest, LoadsOfTwoExpertsAreMet) {
  const ExpertRouting routing{.members = 2,
                              .experts = 2,
                              .top_k = 1,
                              .tokens = 1000,
                              .token_bytes = Bytes(1000),
                              .load = {2, 1}};
  const std::vector<double> tokens = route_tokens(routing).tokens_of_expert;
  EXPECT_NEAR(tokens[0], 2000 * 2 / 3.0, 1e-3);
  EXPECT_NEAR(tokens[1], 2000 / 3.0, 1e-3);
}

// Both experts of a token stand in one node, which has no others. So they get equally many tokens.
TEST(ExpertRoutingTest, LoadsThatANodeLimitForbidsAreRefused) {
  ExpertRouting routing{.members = 2,
                        .experts = 4,
                        .top_k = 2,
                        .tokens = 1000,
                        .token_bytes = Bytes(1000),
                        .load = {2, 1, 2, 1},
                        .members_of_node = 1,
                        .node_limit = 1};
  const std::vector<Problem> problems = check(routing);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "node_limit");
  routing.load = {2, 2, 1, 1};
  EXPECT_EQ(check(routing), std::vector<Problem>{});
}

// An expert with 3 times its even share, of which it takes 1.2: 1.8 of 64 shares are dropped,
// evenly over its tokens. The others' copies stay as they were.
TEST(ExpertRoutingTest, CopiesBeyondTheCapacityAreDropped) {
  ExpertRouting routing{.members = 64,
                        .experts = 64,
                        .top_k = 4,
                        .tokens = 1000,
                        .token_bytes = Bytes(1000),
                        .copies = TokenCopies::kPerMember};
  routing.load.assign(64, 61.0 / 63);
  routing.load[5] = 3;
  const ExpertTraffic all = route_tokens(routing);
  EXPECT_EQ(all.dropped, 0);
  routing.capacity_factor = 1.2;
  const ExpertTraffic cut = route_tokens(routing);
  const double share = 64 * 1000 * 4 / 64.0;  // of an expert
  EXPECT_NEAR(all.tokens_of_expert[5], 3 * share, 1e-3);
  EXPECT_NEAR(cut.tokens_of_expert[5], 1.2 * share, 1e-3);
  EXPECT_NEAR(cut.dropped, 1.8 * share, 1e-3);
  EXPECT_NEAR(static_cast<double>(cut.dispatch.between(0, 5).value()), 1.2 * share / 64 * 1000, 1);
  EXPECT_EQ(cut.dispatch.between(0, 6), all.dispatch.between(0, 6));
}

// Two experts of a node, of which one drops half of its copies: the node is missed by a token that
// chose neither, and by half of those that chose only that one.
TEST(ExpertRoutingTest, ADroppedCopyDoesNotBringItsTokenToTheNode) {
  ExpertRouting routing{.members = 4,
                        .experts = 4,
                        .top_k = 1,
                        .tokens = 1000,
                        .token_bytes = Bytes(1000),
                        .load = {4, 2, 1, 1},
                        .copies = TokenCopies::kPerNode,
                        .members_of_node = 2,
                        .capacity_factor = 1};
  const ExpertTraffic traffic = route_tokens(routing);  // expert 0: 1/2 of the tokens, takes 1/4
  EXPECT_NEAR(static_cast<double>(traffic.dispatch.between_node(3, 0).value()), 5e5, 1);
  EXPECT_NEAR(traffic.dropped, 1000, 1e-6);
}

TEST(ExpertRoutingTest, SaysAllThatIsWrongAtOnce) {
  const ExpertRouting wrong{
      .members = 8, .experts = 12, .top_k = 20, .copies = TokenCopies::kPerNode, .node_limit = 1};
  std::vector<std::string> fields;
  for (const Problem& problem : check(wrong)) fields.push_back(problem.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"experts", "top_k", "tokens", "token_bytes",
                                              "members_of_node"}));
  ExpertRouting loads = deepseek();
  loads.load.assign(256, 1.0);
  loads.load[3] = 1000;
  EXPECT_EQ(check(loads).size(), 1U);
  loads.load[3] = -1;
  EXPECT_EQ(check(loads).size(), 1U);
  loads.load.pop_back();
  EXPECT_EQ(check(loads).size(), 1U);
  EXPECT_TRUE(check(deepseek()).empty());
}

}  // namespace
}  // namespace stepsim
