// S18: data parallelism between slices of v5p, FSDP inside them.
//
// Symbols for one layer in the derivations: m = the arithmetic of its forward (the backward takes 2
// m); f = one pass of its weights or gradients over a slice; d = the all-reduce of a chip's part of
// its gradients over the slices. There are L layers. A ring of n moves (n-1)/n of what the formulas
// count.

#include <algorithm>
#include <cmath>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/book_layer.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/hops.h"
#include "books/laboratory/row_table.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

constexpr double kHost = 25e9;         // B/s into the network, for four chips
constexpr double kEgress = kHost / 4;  // per chip

// Slices of `side` cubed chips.
struct Slices {
  int slices = 2;
  int side = 4;
  double ici = 10;  // speed of the slice's links relative to v5p
  double oversubscription = 1;
  std::int64_t layers = 8;

  double chips() const { return side * side * side; }  // per slice
};

Cluster cluster_of(const Slices& shape) {
  TorusSpec torus;
  for (int axis = 0; axis < 3; ++axis) torus.axes.push_back({.size = shape.side, .wraps = true});
  torus.link_bandwidth = Bandwidth(kV5pLink * shape.ici);
  LeafSpineSpec network;
  network.host_bandwidth = Bandwidth(kHost);
  // One switch for all hosts, or one per slice with one cable up, which every path must take.
  const bool whole = shape.oversubscription == 1;
  const int hosts = static_cast<int>(shape.chips()) / 4;
  network.hosts_per_leaf = whole ? hosts * shape.slices : hosts;
  network.spines = whole ? 0 : 1;
  network.oversubscription = shape.oversubscription;
  ComposedSpec spec{.domain = torus, .tiers = {}};
  spec.tiers.push_back({.name = "slice",
                        .count = shape.slices,
                        .fabric = network,
                        .chips_per_host = 4,
                        .host_bandwidth = Bandwidth(1e15)});
  return cluster_of(TopologySpec(spec), ideal_v5p({4}).chip);
}

StackStep sliced_step(const Slices& shape, double tokens) {
  const auto chips = static_cast<std::int64_t>(shape.chips());
  StackStep step{.layers = shape.layers, .tokens = static_cast<std::int64_t>(tokens)};
  step.plan.mesh.dp = shape.slices * chips;
  step.plan.state.zero = 3;
  step.plan.state.shard = chips;
  step.plan.update.gradient_bytes = 2;
  return step;
}

// Terms of one layer.
struct SliceTerms {
  double m = 0;
  double f = 0;
  double d = 0;
};

SliceTerms terms(const Slices& shape, double tokens) {
  const double chips = shape.chips();
  return {
      .m = predict("E7.math", {{"B", tokens}, {"D", kD}, {"F", kF}, {"N", 1}, {"C", kV5pFlops}}),
      .f = (chips - 1) / chips / shape.ici *
           predict("E2.comms", {{"D", kD}, {"F", kF}, {"W", kV5pAxis}, {"M", 3}}),
      .d = predict(
          "C1",
          {{"n", static_cast<double>(shape.slices)}, {"V", 4 * kD * kF / chips}, {"W", kEgress}})};
}

double formula(const Slices& shape, double tokens) {
  const auto [m, f, d] = terms(shape, tokens);
  return static_cast<double>(shape.layers) * (m + std::max(2 * m, d));
}

// Returns the tokens per chip at which arithmetic takes as long as the network.
double threshold(const Slices& shape) {
  return predict("E9.slices",
                 {{"C", kV5pFlops}, {"W", kEgress}, {"s", static_cast<double>(shape.slices)}}) /
         shape.chips();
}

std::string text_of(const Slices& shape, double tokens) {
  return std::to_string(shape.slices) + " slices of " + std::to_string(int(shape.chips())) +
         " chips, " + std::to_string(int(tokens * shape.chips())) + " tokens a slice";
}

std::function<double(const Laboratory&)> simulated(const Slices& shape, double tokens) {
  return [=](const Laboratory& laboratory) {
    return to_seconds(run(laboratory, sliced_step(shape, tokens), cluster_of(shape)).step_time);
  };
}

// The first gather, f, and the last reduction, f inside and d between slices, stand alone. If
// compute-bound, the step takes 3 L m + 2 f + d. Otherwise reductions between slices follow each
// other from the first backward on. The reduce-scatter before them shares its links with the gather
// of the layer after next, which starts at the same time, and takes 2 f: L m + 2 m + 3 f + L d.
double sliced_by_hand(const Slices& shape, double tokens) {
  const auto [m, f, d] = terms(shape, tokens);
  const auto layers = static_cast<double>(shape.layers);
  return std::max(3 * layers * m + d + 2 * f, (layers + 2) * m + layers * d + 3 * f);
}

// Without link sharing that reduce-scatter is alone, and each chip of a host has its whole 25 GB/s:
// d / 4.
double by_hand_unshared(const Slices& shape, double tokens) {
  const auto [m, f, d] = terms(shape, tokens);
  const auto layers = static_cast<double>(shape.layers);
  return std::max(3 * layers * m + d / 4, (layers + 2) * m + layers * d / 4) + 2 * f;
}

constexpr double kMargin = 2e-4;

// On packets the four chips of a host are served one after another, so the chips of a slice
// continue at different times. The three colours of their next gather fit together when all begin
// at once. Now they meet on links: a pass takes up to three times its f. At most three passes stand
// alone. Packets of up to 4 MiB, or messages if those are smaller, are stored once per round
// between two links of 25 GB/s.
DifferenceRange on_packets(const Slices& shape, double tokens, double seconds, double stores = 1) {
  const double rounds = 2 * (shape.slices - 1);
  const double message = 4 * kD * kF / shape.chips() / shape.slices;
  const double stored = stores * rounds * std::min(message, 4.0 * (1 << 20)) / kHost;
  const double f = terms(shape, tokens).f;
  const double predicted = formula(shape, tokens);
  return {(seconds - f) / predicted - 1, (seconds + 6 * f + stored) / predicted - 1};
}

StudyRow& add(RowTable& rows, std::string id, std::string what, std::string why,
              const Slices& shape, double tokens, DifferenceRange of_seconds) {
  const double predicted = formula(shape, tokens);
  return rows.testing("E9.slices", predicted)
      .add(std::move(id), text_of(shape, tokens) + what,
           {of_seconds.low / predicted - 1 - kMargin, of_seconds.high / predicted - 1 + kMargin},
           std::move(why), simulated(shape, tokens));
}

void add_thresholds(RowTable& rows) {
  const auto add_one = [&rows](std::string id, const Slices& shape, double times,
                               std::string why) -> StudyRow& {
    const double tokens = std::round(threshold(shape) * times);
    const double hand = sliced_by_hand(shape, tokens);
    // Exact to one pass of the weights if the slice's links are fast, because their time hardly
    // shows.
    const double pass = shape.ici > 10 ? terms(shape, tokens).f : 0;
    StudyRow& row = add(rows, std::move(id), "; links inside never bind", std::move(why), shape,
                        tokens, {hand - pass, hand + pass});
    row.expected_unshared = around(by_hand_unshared(shape, tokens) / row.predicted - 1, kMargin);
    row.expected_packets = on_packets(shape, tokens, hand);
    return row;
  };
  // Links inside are ten times as fast as real ones, so that only the network between slices binds.
  const std::string alone = "the last reduction has nothing to hide behind";
  for (const int slices : {2, 8}) {
    for (const auto& [name, times] : {std::pair{"half", 0.5}, {"at", 1.0}, {"twice", 2.0}}) {
      add_one("slices-" + std::to_string(slices) + "-" + name, {.slices = slices}, times, alone);
    }
  }
  add_one("slices-16-at", {.slices = 16}, 1, alone);
  add_one("slices-16-deep", {.slices = 16, .layers = 32}, 2,
          "32 layers at twice the threshold: one reduction is 1 % of the step");
  // A slice of 8 times the chips needs equally many tokens, an eighth per chip. Links inside are a
  // hundred times as fast here, because 72 tokens per chip are few for FSDP too.
  add_one("larger-slices", {.slices = 2, .side = 8, .ici = 100}, 1,
          "the tokens of a slice decide, not those of a chip: more chips have more hosts and less "
          "work each");
  // E9 does not depend on the number of slices: its all-reduce moves 2 V. That of 16 slices moves
  // 15/16 of it.
  const Slices many{.slices = 16};
  const double tokens = std::round(threshold(many) / 2);
  const auto [m, f, d] = terms(many, tokens);
  const double endless = 8 * (m + d * 16 / 15);
  const double hand = sliced_by_hand(many, tokens);
  StudyRow& row = rows.testing("E9", endless)
                      .add("slices-16-e9", text_of(many, tokens) + ", against endlessly many",
                           around(hand / endless - 1, kMargin),
                           "15/16 of the gradients move, and a backward precedes the first of them",
                           simulated(many, tokens));
  row.expected_unshared = around(by_hand_unshared(many, tokens) / endless - 1, kMargin);
  const double over = formula(many, tokens) / endless;
  const DifferenceRange packets = on_packets(many, tokens, hand);
  row.expected_packets = {(1 + packets.low) * over - 1, (1 + packets.high) * over - 1};
}

void add_breaches(RowTable& rows) {
  constexpr double kTokens = 574;  // per chip: 36,736 per slice, the threshold of two slices
  const Slices real{.ici = 1};
  const auto [m, f, d] = terms(real, kTokens);
  // 574 tokens per chip are too few for FSDP inside the slice, which needs 850. Its links carry 3 L
  // f and idle at most for the backward of a layer. Then comes the last d.
  StudyRow& inside =
      add(rows, "slices-2-fsdp", ", links inside as they are",
          "574 tokens a chip are compute-bound between slices, but not inside them: 850 are needed",
          real, kTokens, {3 * 8 * f + d, 3 * 8 * f + 2 * m + d});
  // Chips of a host take turns on its card. So the colours of the later gathers fall out of step
  // and meet on links during the whole step: a gather takes between one and three times f.
  inside.expected_packets = DifferenceRange{(3 * 8 * f + d) / inside.predicted - 1,
                                            (3 * 8 * 3 * f + 2 * m + d) / inside.predicted - 1};
  // Without link sharing, gathers and reduce-scatters of a backward run side by side: f forward, 2
  // m backward. Each chip of a host has its whole bandwidth: d / 4.
  inside.expected_unshared = {(8 * (f + 2 * m) + d / 4) / inside.predicted - 1,
                              (8 * (f + 2 * m) + 2 * f + 2 * m + d / 4) / inside.predicted - 1};
  // Uplinks of half the bandwidth double d.
  const Slices thin{.oversubscription = 2};
  const double doubled = (8 + 2) * m + 8 * 2 * d + 3 * f / 10;
  StudyRow& narrow =
      add(rows, "oversubscribed", ", network oversubscribed 2 to 1",
          "half of the bandwidth: twice the tokens are needed", thin, kTokens, {doubled, doubled});
  narrow.expected_packets = on_packets(thin, kTokens, doubled, 3);  // stored at three of its links
  // Without link sharing nothing is oversubscribed, and d is d / 4, which hides completely.
  narrow.expected_unshared =
      around((3 * 8 * m + d / 4 + 2 * f / 10) / narrow.predicted - 1, kMargin);
  // No reduction inside a slice first: one ring through all 128 chips leaves a slice over one host,
  // which carries 2 x 127/128 of all gradients of a layer.
  const double ring = 2 * 127.0 / 128 * 4 * kD * kF / kHost;
  const double predicted = formula({}, kTokens);
  rows.testing("E9.slices", predicted)
      .add("one-ring", text_of({}, kTokens) + ", one ring through all 128 chips",
           around(((8 + 2) * m + 8 * ring) / predicted - 1, 0.2),
           "one host of 16 carries everything, the whole instead of a half",
           [](const Laboratory& laboratory) {
             StackStep step = sliced_step({}, kTokens);
             step.plan.state.zero = 0;
             step.plan.state.shard.reset();
             step.data_algorithm = AlgorithmChoice::kRing;
             return to_seconds(run(laboratory, step, cluster_of(Slices{})).step_time);
           });
}

// ---- the network alone ----

constexpr double kHostGradients = 1e9;  // bytes per host

Cluster hosts_on_a_switch(int hosts) {
  LeafSpineSpec spec;
  spec.leaves = 1;
  spec.hosts_per_leaf = hosts;
  spec.host_bandwidth = Bandwidth(kHost);
  return cluster_of(spec);
}

// Each of 8 hosts, in 8 slices, sends an eighth of its bytes to every other one, one after another.
void add_incast(RowTable& rows) {
  const auto scatter = [](const std::vector<std::vector<std::uint32_t>>& destinations) {
    return [destinations](const Laboratory& laboratory) {
      return laboratory.seconds(messages_in_order(destinations, whole_bytes(kHostGradients / 8)),
                                hosts_on_a_switch(8));
    };
  };
  rows.testing("B2", predict("B2", {{"V", kHostGradients}, {"n", 8}, {"W", kHost}}));
  rows.add("scatter-paced", "reduce-scatter of 8 hosts, each destination in its turn",
           {-1e-4, 0.004}, "no port has two senders", scatter(rotated_order(8)));
  // Like S24's incast and random orders.
  StudyRow& same =
      rows.add("scatter-same-order", "the same, everybody to host 0 first", around(3, 1e-4),
               "28 messages one after another in place of 7", scatter(same_order(8)));
  same.expected_unshared = around(0, 1e-4);
  same.expected_packets = {2.8, 3.05};
  StudyRow& random = rows.add("scatter-random", "the same in orders drawn by lot (mean of 16)",
                              {0.88, 0.88 + 0.42},
                              "without pacing two senders meet at a port while another one idles",
                              [scatter](const Laboratory& laboratory) {
                                double sum = 0;
                                for (std::uint64_t seed = 0; seed < 16; ++seed) {
                                  sum += scatter(random_order(8, seed))(laboratory) / 16;
                                }
                                return sum;
                              });
  random.expected_unshared = around(0, 1e-4);
  random.expected_packets = {0.62, 0.62 + 0.42};
}

// Returns the probability that none of `bins` bins has more than `most` of as many balls.
double none_above(int bins, int most) {
  const auto n = static_cast<std::size_t>(bins);
  std::vector<double> ways(n + 1);  // over factorials: by number of balls in the bins so far
  ways[0] = 1;
  for (int bin = 0; bin < bins; ++bin) {
    std::vector<double> next(n + 1);
    for (std::size_t balls = 0; balls <= n; ++balls) {
      double factorial = 1;
      for (std::size_t more = 0; more <= static_cast<std::size_t>(most) && balls + more <= n;
           ++more) {
        if (more > 0) factorial *= static_cast<double>(more);
        next[balls + more] += ways[balls] / factorial;
      }
    }
    ways = std::move(next);
  }
  return ways[n] * std::exp(std::lgamma(bins + 1.0) - bins * std::log(bins));
}

constexpr int kFlows = 16;

// 16 hosts of a slice send to those of the other slice, over 16 spines chosen by hashes.
double hashed_flows(const Laboratory& laboratory, std::uint64_t seed) {
  LeafSpineSpec spec;
  spec.leaves = 2;
  spec.hosts_per_leaf = kFlows;
  spec.spines = kFlows;
  spec.host_bandwidth = Bandwidth(kHost);
  spec.routing = {.rule = PathRule::kEcmp, .seed = seed};
  std::vector<std::vector<std::uint32_t>> destinations(2 * kFlows);
  for (std::uint32_t host = 0; host < kFlows; ++host) destinations[host] = {host + kFlows};
  return laboratory.seconds(messages_in_order(destinations, whole_bytes(kHostGradients)),
                            cluster_of(spec));
}

void add_hashes(RowTable& rows) {
  // The busiest of 16 uplinks has as many flows as the fullest of 16 bins that receive 16 balls:
  // 3.08 on average, with a deviation of about 0.75. The mean of 64 seeds deviates by 0.09, and
  // four times that is allowed.
  double fullest = 0;
  for (int most = 0; most < kFlows; ++most) fullest += 1 - none_above(kFlows, most);
  StudyRow& row =
      rows.testing("A1.comms", predict("A1.comms", {{"V", kHostGradients}, {"W", kHost}}))
          .add("ecmp",
               "16 large flows between two slices, hashed to 16 uplinks (mean of 64 hashes)",
               around(fullest - 1, 0.37), "some uplinks get three flows, a third of them none",
               [](const Laboratory& laboratory) {
                 double sum = 0;
                 for (std::uint64_t seed = 1; seed <= 64; ++seed) {
                   sum += hashed_flows(laboratory, seed) / 64;
                 }
                 return sum;
               });
  row.expected_unshared = around(0, 1e-4);
}

std::vector<StudyRow> slice_rows() {
  RowTable rows({.tolerance = 0.02});
  add_thresholds(rows);
  add_breaches(rows);
  add_incast(rows);
  add_hashes(rows);
  return std::move(rows).take();
}

}  // namespace

std::vector<Study> slice_studies() {
  return {{.id = "S18",
           .source = kBookTraining,
           .title = "Data parallelism between slices",
           .claim = "v5p slices are compute-bound from 73,440 tokens a slice; two from half of it",
           .rows = slice_rows,
           .finding = "Reduce-scatters without pacing cost more than the 10 to 50 % that are "
                      "usually guessed: four times for one order of all, twice for random ones."}};
}

}  // namespace stepsim
