// S13 and S14: data parallelism and FSDP of the two-matmul model on v5p 4x4x4.
//
// Symbols for one layer in the derivations: c = the arithmetic of its forward (the backward takes 2
// c); a = one pass of its weights or gradients over the slice (a gather or a reduce-scatter; an
// all-reduce takes 2 a). There are L layers. The formulas take V / W for a pass. A ring of 64 moves
// 63/64 of it, so a = 63/64 of theirs.

#include <algorithm>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/book_layer.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "sim/program/graph_by_hand.h"

namespace stepsim {
namespace {

constexpr std::int64_t kRingChips = 64;
constexpr double kRing = 63.0 / 64;

// Terms of one layer, by the formulas.
double forward_math(double tokens) {
  return predict("E2.math", {{"B", tokens}, {"D", kD}, {"F", kF}, {"X", 1}, {"C", kV5pFlops}});
}
double backward_math(double tokens) {
  return predict("E1.math", {{"B", tokens}, {"D", kD}, {"F", kF}, {"X", 1}, {"C", kV5pFlops}});
}
double all_reduce(double axes) {
  return predict("E1.comms", {{"D", kD}, {"F", kF}, {"W", kV5pAxis}, {"M", axes}});
}
double gather(double axes) {
  return predict("E2.comms", {{"D", kD}, {"F", kF}, {"W", kV5pAxis}, {"M", axes}});
}

StackStep step_of(std::int64_t tokens, std::int64_t layers, int zero) {
  StackStep step{.layers = layers, .tokens = tokens, .map = "dp:x+y+z"};
  step.plan.mesh.dp = kRingChips;
  step.plan.state.zero = zero;
  step.plan.update.gradient_bytes = 2;
  return step;
}

std::string name_of_run(std::int64_t tokens, std::int64_t layers) {
  return "tokens-" + std::to_string(tokens) + "-layers-" + std::to_string(layers);
}

std::string text_of_run(std::int64_t tokens, std::int64_t layers) {
  return std::to_string(tokens) + " tokens a chip, " + std::to_string(layers) + " layers";
}

const std::vector<double> kSweptTokens = {100, 200, 400, 600, 850, 1200, 1700, 2550, 3600, 5000};

// ---- S13 ----

double data_parallel_formula(double tokens, double layers, double axes) {
  return layers * (forward_math(tokens) + std::max(backward_math(tokens), all_reduce(axes)));
}

// `by_hand`: the time in seconds that the simulated step must take.
StudyRow data_parallel_row(const StackStep& step, double by_hand, double axes = 3) {
  const double predicted = data_parallel_formula(static_cast<double>(step.tokens),
                                                 static_cast<double>(step.layers), axes);
  return {.formula = "E1",
          .predicted = predicted,
          .expected = around(by_hand / predicted - 1),
          .tolerance = 0.021,
          .simulate = [step](const Laboratory& laboratory) { return seconds(laboratory, step); }};
}

std::vector<StudyRow> data_parallel_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&rows](std::string id, std::string regime, std::string why, StudyRow row) {
    row.id = std::move(id);
    row.regime = std::move(regime);
    row.why = std::move(why);
    rows.push_back(std::move(row));
  };
  const double a = kRing * gather(3);
  const double knee = forward_math(850);
  // Compute-bound: every all-reduce (2 a) hides behind the backward of the layers below. Only that
  // of the first layer, which comes last, does not: 3 L c + 2 a.
  for (const auto& [tokens, layers] : {std::pair{5000, 32}, {1700, 32}, {850, 32}, {850, 4}}) {
    add(name_of_run(tokens, layers), text_of_run(tokens, layers),
        "the all-reduce of the first layer has nothing left to hide behind",
        data_parallel_row(step_of(tokens, layers, 0), 3 * layers * forward_math(tokens) + 2 * a));
  }
  // Communication-bound: all-reduces follow each other without a gap from the first backward layer
  // on: L c + 2 c + 2 L a. The formula has L c + 2 L a 64/63.
  add("tokens-100", "100 tokens a chip",
      "(n-1)/n of the gradients move, and the backward of a layer precedes the first of them",
      data_parallel_row(step_of(100, 32, 0), 34 * forward_math(100) + 32 * 2 * a));
  // The all-reduces run one after another once the backward has ended, so the terms add: 3 L c + 2
  // L a.
  StackStep late = step_of(850, 32, 0);
  late.plan.overlap.gradients = false;
  add("unoverlapped", "850 tokens a chip, reduced after the backward",
      "nothing hides the all-reduces: the terms add",
      data_parallel_row(late, 32 * (3 * knee + 2 * a)));
  // Axis after axis, message by message: only one axis works at a time, so three axes are no faster
  // than one. A pass takes 3 a, and the threshold is that of one axis, 2550 tokens (M = 1).
  StackStep naive = step_of(850, 32, 0);
  naive.data_algorithm = AlgorithmChoice::kAxisAfterAxis;
  naive.granularity = Granularity::kStepped;
  add("axis-after-axis", "850 tokens a chip, reduced along x, then y, then z",
      "two of three axes idle at any time: they bring the bandwidth of one",
      data_parallel_row(naive, 34 * knee + 32 * 2 * 3 * a));
  naive.tokens = 2550;
  add("axis-after-axis-one-axis", "2550 tokens a chip, along x, then y, then z; M = 1",
      "with M = 1 the formula counts such an all-reduce",
      data_parallel_row(naive, 3 * 32 * forward_math(2550) + 2 * 3 * a, 1));
  // In chunks, the axes work on different chunks at once. But x carries 3/4 of all bytes; y and z
  // carry what its groups of four leave, 3/16 and 3/64. So x decides: 3/4 of the time that one axis
  // takes for all bytes.
  naive.tokens = 850;
  naive.granularity = Granularity::kPipelined;
  add("axis-after-axis-in-chunks", "850 tokens a chip, along x, then y, then z, in chunks",
      "the first axis carries 3/4 of the bytes, so y and z mostly wait",
      data_parallel_row(naive, 34 * knee + 32 * 2 * 0.75 * gather(1)));
  rows.back().expected_packets = rows[rows.size() - 3].expected;  // packets run in whole messages
  return rows;
}

std::vector<Sweep> data_parallel_sweeps() {
  Sweep sweep{.name = "S13-data-parallel",
              .title = "Data parallelism on v5p 4x4x4: step time",
              .subtitle = "two-matmul layers, D 8192, F 32768, 32 layers",
              .x = PlotAxis{.label = "tokens a chip", .log = true},
              .y = PlotAxis{.label = "step", .unit = "s", .log = true},
              .at = kSweptTokens,
              .curves = {}};
  for (const bool at_once : {true, false}) {
    sweep.curves.push_back({.label = at_once ? "three axes at once" : "axis after axis",
                            .predict =
                                [at_once](double tokens) {
                                  return data_parallel_formula(tokens, 32, at_once ? 3 : 1);
                                },
                            .simulate =
                                [at_once](const Laboratory& laboratory, double tokens) {
                                  StackStep step =
                                      step_of(static_cast<std::int64_t>(tokens), 32, 0);
                                  if (!at_once) {
                                    step.data_algorithm = AlgorithmChoice::kAxisAfterAxis;
                                  }
                                  return seconds(laboratory, step);
                                }});
  }
  return {sweep};
}

// ---- S14 ----

double sharded_formula(double tokens, double layers) {
  return layers * (std::max(forward_math(tokens), gather(3)) +
                   std::max(backward_math(tokens), 2 * gather(3)));
}

// The place of the gather of the layer after next in the backward's single channel.
enum class Channel { kAheadOfReduction, kBehindReduction };

// FSDP by hand with all collectives in one channel, one after another, like those of one process
// group. `table`: bytes of an embedding that is gathered before the first layer and reduced after
// its backward, and computes nothing.
struct OneChannel {
  double tokens = 850;
  std::uint32_t layers = 32;
  Channel order = Channel::kAheadOfReduction;
  double table = 0;
};

double seconds(const Laboratory& laboratory, const OneChannel& sharded) {
  GraphByHand graph(kRingChips);
  const CommunicatorId all = graph.communicator();
  const auto work = [all](CollectiveOp op, double bytes) {
    CollectiveWork of_all = work_of(op, whole_bytes(bytes));
    of_all.communicator = all;
    return of_all;
  };
  const double layer = 2 * 2 * kD * kF;
  const Flops forward(4 * sharded.tokens * kD * kF);
  for (std::uint32_t rank = 0; rank < kRingChips; ++rank) {
    const StreamId channel = graph.stream(rank, "channel");
    std::vector<OpRef> computed;
    std::vector<OpRef> gathered;
    // Two layers are gathered at a time.
    const auto gather = [&] {
      std::vector<Dependency> room;
      if (gathered.size() >= 2) room = {after(computed[gathered.size() - 2])};
      gathered.push_back(
          graph.collective(rank, channel, work(CollectiveOp::kAllGather, layer), room));
    };
    std::vector<Dependency> table;
    if (sharded.table > 0) {
      table = {
          after(graph.collective(rank, channel, work(CollectiveOp::kAllGather, sharded.table)))};
    }
    const std::uint32_t visits = 2 * sharded.layers;
    for (std::uint32_t visit = 0; visit < visits; ++visit) {
      const bool backward = visit >= sharded.layers;
      while (gathered.size() <= visit) gather();
      std::vector<Dependency> ready = {after(gathered[visit])};
      if (visit == 0) ready.insert(ready.end(), table.begin(), table.end());
      computed.push_back(
          graph.compute(rank, backward ? Flops(2 * forward.value()) : forward, ready));
      if (!backward) continue;
      if (sharded.order == Channel::kAheadOfReduction && visit + 1 < visits) gather();
      graph.collective(rank, channel, work(CollectiveOp::kReduceScatter, layer),
                       {after(computed.back())});
    }
    if (sharded.table > 0) {
      graph.collective(rank, channel, work(CollectiveOp::kReduceScatter, sharded.table),
                       {after(computed.back())});
    }
  }
  return laboratory.seconds(graph.build(), ideal_v5p({4, 4, 4}));
}

void add_one_channel(std::vector<StudyRow>& rows) {
  const double a = kRing * gather(3);
  const auto add = [&rows](std::string id, std::string regime, std::string why,
                           const OneChannel& sharded, double by_hand) {
    const double predicted = sharded_formula(sharded.tokens, sharded.layers);
    rows.push_back({.id = std::move(id),
                    .formula = "E2",
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .expected = around(by_hand / predicted - 1),
                    .tolerance = 0.021,
                    .why = std::move(why),
                    .simulate = [sharded](const Laboratory& laboratory) {
                      return seconds(laboratory, sharded);
                    }});
  };
  // In one channel, the reduction of a layer and the gather of the next but one must fit into one
  // backward, 2 c. They do up to the knee: 3 L c + 2 a. This requires that the next layer's gather
  // is in the channel before the reduction of the computing layer.
  const double knee = 3 * forward_math(850);
  add("one-channel-ahead", "850 tokens a chip, gathers before reductions in one channel",
      "the gather that a layer needs next goes first, so one channel costs nothing", {},
      32 * knee + 2 * a);
  // If the gather comes behind, it waits for the reduction, which waits for the backward. So 2 a
  // precedes every backward except the first, and one reduction and one gather remain at the ends:
  // 3 L c + 2 L a.
  OneChannel behind{.order = Channel::kBehindReduction};
  add("one-channel-behind", "850 tokens a chip, one channel, gathers behind reductions",
      "priority inversion: the gather that the next layer waits for queues behind a reduction "
      "that nobody waits for",
      behind, 32 * (knee + 2 * a));
  // Far from the knee, a = c / 10: a tenth of each backward.
  behind.tokens = 8500;
  add("one-channel-behind-8500", "8,500 tokens a chip, one channel, gathers behind reductions",
      "the same costs a tenth of every backward where weights take a tenth of a layer's forward",
      behind, 32 * (3 * forward_math(8500) + 2 * a));
  // An embedding of 65,536 tokens, 1.07 GB, is one more layer to gather before anything can start
  // and to reduce at the end: 3 L c + 2 a + 2 a of the table.
  for (const std::uint32_t layers : {32U, 4U}) {
    const double table = 2 * 65536 * kD;
    add("embedding-layers-" + std::to_string(layers),
        "850 tokens a chip, " + std::to_string(layers) + " layers behind an embedding of 1.07 GB",
        "the step begins with its gather and ends with its reduction, and it computes nothing that "
        "could hide them",
        {.layers = layers, .table = table},
        layers * knee + 2 * a + 2 * kRing * table / (3 * kV5pAxis));
  }
}

std::vector<StudyRow> sharded_rows() {
  std::vector<StudyRow> rows;
  const double a = kRing * gather(3);
  // Adds a row whose time by hand is between `low` and `high` seconds.
  const auto add = [&rows](std::string id, std::string regime, std::string why,
                           const StackStep& step, double low, double high) {
    const double predicted =
        sharded_formula(static_cast<double>(step.tokens), static_cast<double>(step.layers));
    rows.push_back(
        {.id = std::move(id),
         .formula = "E2",
         .regime = std::move(regime),
         .predicted = predicted,
         .expected = {low / predicted - 1 - kRounding, high / predicted - 1 + kRounding},
         .tolerance = 0.021,
         .why = std::move(why),
         .simulate = [step](const Laboratory& laboratory) { return seconds(laboratory, step); }});
  };
  // Compute-bound: everything hides except the first gather and the last reduce-scatter: 3 L c + 2
  // a.
  for (const auto& [tokens, layers] : {std::pair{850, 80}, {850, 32}, {850, 4}, {1700, 32}}) {
    const double by_hand = 3 * layers * forward_math(tokens) + 2 * a;
    add(name_of_run(tokens, layers), text_of_run(tokens, layers),
        "the first gather and the last reduce-scatter have nothing to hide behind",
        step_of(tokens, layers, 3), by_hand, by_hand);
  }
  // Communication-bound: links carry 3 L a. They idle at most for the backward of the first layer,
  // 2 c, between its gather and its reduce-scatter.
  add("tokens-100", "100 tokens a chip", "(n-1)/n of the weights and gradients move",
      step_of(100, 32, 3), 3 * 32 * a, 3 * 32 * a + 2 * forward_math(100));
  // Without link sharing, reduce-scatters hide behind gathers, except for the last.
  const double formula = sharded_formula(100, 32);
  rows.back().expected_unshared = {
      2 * 32 * a / formula - 1, (2 * 32 * a + a + 2 * forward_math(100)) / formula - 1 + kRounding};
  // Without prefetch a gather starts when the layer before has ended. Forward: L (a + c). Backward:
  // the gather starts together with the reduce-scatter of that layer and shares the links with it,
  // so both take 2 a: L (2 a + 2 c). The first gather and the last reduce-scatter are alone, which
  // saves a each. Together: 3 L (a + c).
  StackStep late = step_of(850, 32, 3);
  late.plan.state.prefetch = 0;
  const double by_hand = 3 * 32 * (a + forward_math(850));
  add("no-prefetch", "850 tokens a chip, gathered when needed",
      "a gather that starts when its layer should hides behind nothing", late, by_hand, by_hand);
  // Without link sharing, only gathers delay the step: 2 L a + 3 L c and the last reduce-scatter.
  const double alone = (2 * 32 + 1) * a + 3 * 32 * forward_math(850);
  rows.back().expected_unshared = around(alone / sharded_formula(850, 32) - 1);
  // Packets are served first come, first served. The gather's packets queue before those of the
  // reduce-scatter, which starts when its layer ends. So the gather finishes earlier by at most one
  // whole message, a shard: two of the 63 that pass each link in a.
  rows.back().expected_packets = {
      (by_hand - 32 * 2 * a / 63) / sharded_formula(850, 32) - 1 - kRounding,
      rows.back().expected.high};
  add_one_channel(rows);
  return rows;
}

std::vector<Sweep> sharded_sweeps() {
  Sweep sweep{.name = "S14-fsdp",
              .title = "FSDP on v5p 4x4x4: step time",
              .subtitle = "two-matmul layers, D 8192, F 32768, 32 layers",
              .x = PlotAxis{.label = "tokens a chip", .log = true},
              .y = PlotAxis{.label = "step", .unit = "s", .log = true},
              .at = kSweptTokens,
              .curves = {}};
  sweep.curves.push_back({.label = "gathered a layer ahead",
                          .predict = [](double tokens) { return sharded_formula(tokens, 32); },
                          .simulate =
                              [](const Laboratory& laboratory, double tokens) {
                                return seconds(laboratory,
                                               step_of(static_cast<std::int64_t>(tokens), 32, 3));
                              }});
  sweep.curves.push_back({.label = "gathered when needed",
                          .simulate = [](const Laboratory& laboratory, double tokens) {
                            StackStep step = step_of(static_cast<std::int64_t>(tokens), 32, 3);
                            step.plan.state.prefetch = 0;
                            return seconds(laboratory, step);
                          }});
  return {sweep};
}

}  // namespace

std::vector<Study> data_parallel_studies() {
  return {{.id = "S13",
           .source = kBookTraining,
           .title = "Data parallelism: where it is compute-bound",
           .claim = "on three axes of v5p data parallelism is compute-bound from 850 tokens a chip",
           .rows = data_parallel_rows,
           .sweeps = data_parallel_sweeps},
          {.id = "S14",
           .source = kBookTraining,
           .title = "FSDP with prefetch",
           .claim = "FSDP is compute-bound from the same 850 tokens a chip, if weights come ahead",
           .rows = sharded_rows,
           .sweeps = sharded_sweeps}};
}

}  // namespace stepsim
