#include "schedules/lowering/steps/collective_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "schedules/plan/axis.h"
#include "sim/program/program_builder.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;
using Kind = LayerStep::Kind;

Kernel matmul(const char* name, double flops) {
  return {.name = name,
          .kind = KernelKind::kMatmul,
          .flops = Flops(flops),
          .read = Bytes(3000),
          .written = Bytes(2000),
          .batch = 1,
          .m = 1000,
          .n = 2000,
          .k = 500};
}

LayerStep compute(std::vector<Kernel> kernels) {
  LayerStep step;
  step.kernels = std::move(kernels);
  step.kept = Bytes(7);
  step.let_go = Bytes(9);
  step.workspace = Bytes(11);
  return step;
}

LayerStep collective(CollectiveOp op, Bytes bytes) {
  LayerStep step;
  step.kind = Kind::kCollective;
  step.collective = op;
  step.bytes = bytes;
  return step;
}

// gather | up, activation, down | scatter
std::vector<LayerStep> block(Bytes bytes, double flops) {
  Kernel activation{.name = "activation"};
  return {collective(CollectiveOp::kAllGather, bytes),
          compute({matmul("up", flops), activation, matmul("down", flops)}),
          collective(CollectiveOp::kReduceScatter, bytes)};
}

// What all steps do together.
struct Totals {
  Bytes gathered;
  Bytes scattered;
  Bytes kept;
  Bytes let_go;
  Flops flops;
  std::int64_t rows = 0;

  explicit Totals(const std::vector<LayerStep>& steps) {
    for (const LayerStep& step : steps) {
      const bool gathers = step.collective == CollectiveOp::kAllGather;
      if (step.kind != Kind::kCompute) (gathers ? gathered : scattered) += step.bytes;
      kept += step.kept;
      let_go += step.let_go;
      for (const Kernel& kernel : step.kernels) {
        flops += kernel.flops;
        rows += kernel.m;
      }
    }
  }
};

TEST(CollectiveMatmulTest, CutsTheMatmulAndWhatItEatsOrFeeds) {
  const std::vector<LayerStep> steps = overlap_matmuls(block(Bytes(1006), 9e9), 3);
  std::vector<Kind> kinds;
  for (const LayerStep& step : steps) kinds.push_back(step.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kCollective, Kind::kDetached, Kind::kCompute,
                                      Kind::kDetached, Kind::kCompute, Kind::kCompute,
                                      Kind::kCompute, Kind::kDetached, Kind::kCompute,
                                      Kind::kDetached, Kind::kCompute, Kind::kCollective}));
  // The activation follows the last chunk of "up". Nothing is lost, and weights are read three
  // times.
  EXPECT_EQ(steps[5].kernels.size(), 2U);
  const Totals all(steps);
  EXPECT_EQ(all.gathered, Bytes(1006));
  EXPECT_EQ(all.scattered, Bytes(1006));
  EXPECT_EQ(all.kept, Bytes(7));
  EXPECT_EQ(all.let_go, Bytes(9));
  EXPECT_NEAR(all.flops.value(), 18e9, 1);
  EXPECT_EQ(all.rows, 2000);
  EXPECT_EQ(steps[2].kernels[0].m, 333);
}

TEST(CollectiveMatmulTest, LeavesOtherStepsAlone) {
  std::vector<LayerStep> steps = block(Bytes(1000), 1e9);
  steps[0].collective = CollectiveOp::kAllReduce;
  steps[2].kind = Kind::kDetached;
  EXPECT_EQ(overlap_matmuls(steps, 4).size(), 3U);
  EXPECT_EQ(overlap_matmuls(block(Bytes(1000), 1e9), 1).size(), 3U);
  // A matmul with a gather before it and a scatter behind it is cut for the gather.
  const std::vector<LayerStep> one = {collective(CollectiveOp::kAllGather, Bytes(1000)),
                                      compute({matmul("only", 1e9)}),
                                      collective(CollectiveOp::kReduceScatter, Bytes(1000))};
  EXPECT_EQ(overlap_matmuls(one, 2).size(), 5U);
}

// Runs the steps as a stage does (stage_lowering.cc): collectives on their own stream, compute
// after the ops that it waits for.
double seconds_of(const std::vector<LayerStep>& steps, std::uint32_t ranks) {
  OpGraph graph;
  graph.path_labels = {"compute"};
  ProgramBuilder builder("rank");
  const StreamId compute_stream = builder.add_stream("compute", true);
  const StreamId collectives = builder.add_stream("tp");
  std::vector<Dependency> waits;
  std::optional<OpRef> last;
  std::optional<OpRef> detached;
  for (const LayerStep& step : steps) {
    if (step.kind == Kind::kCompute) {
      OpDraft op{.stream = compute_stream};
      op.work = static_cast<std::uint32_t>(graph.compute_works.size());
      op.dependencies = std::exchange(waits, {});
      graph.compute_works.push_back({.kernels = step.kernels, .path_label = 0});
      if (detached) waits.push_back(after(*std::exchange(detached, std::nullopt)));
      last = builder.add(std::move(op));
      continue;
    }
    OpDraft op{.stream = collectives, .kind = OpKind::kCollective, .axis = Axis::kTensor};
    op.work = static_cast<std::uint32_t>(graph.collective_works.size());
    graph.collective_works.push_back({.communicator = CommunicatorId(0),
                                      .op = step.collective,
                                      .bytes = step.bytes,
                                      .algorithm = AlgorithmChoice::kRing});
    op.dependencies = waits;
    if (last) op.dependencies.push_back(after(*last));
    const OpRef done = builder.add(std::move(op));
    if (step.kind == Kind::kDetached) {
      detached = done;
    } else {
      waits = {after(done)};
    }
  }
  graph.programs.push_back(std::move(builder).build());
  Communicator all{.name = "tp", .axis = Axis::kTensor, .groups = {{}}, .seat_of = {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    graph.ranks.push_back({.program = ProgramId(0), .chip = rank});
    all.groups[0].emplace_back(rank);
    all.seat_of.push_back({0, rank});
  }
  graph.communicators.push_back(std::move(all));
  const Cluster cluster = one_node(static_cast<int>(ranks), 100_GBps);
  return to_seconds(simulate(graph, cluster, {}).step_time);
}

// max + min / k (FORMULAS E6, S15), by compute and by communication; chunk 1 is the sum. A gather
// of 4 GB over 8 ranks at 100 GB/s takes 35 ms; the chip makes 1 PFLOP/s.
TEST(CollectiveMatmulTest, AChunkOfTheShorterOneIsLeftOver) {
  const double gather = 7.0 / 8 * 4e9 / 100e9;
  for (const double math : {0.7 * gather, 1.9 * gather}) {
    const std::vector<LayerStep> pair = {collective(CollectiveOp::kAllGather, Bytes(4'000'000'000)),
                                         compute({matmul("up", math * 1e15)})};
    const std::vector<LayerStep> mirrored = {
        compute({matmul("down", math * 1e15)}),
        collective(CollectiveOp::kReduceScatter, Bytes(4'000'000'000))};
    for (const std::int64_t chunks : {1, 2, 8, 20}) {
      const double expected =
          std::max(math, gather) + std::min(math, gather) / static_cast<double>(chunks);
      EXPECT_NEAR(seconds_of(overlap_matmuls(pair, chunks), 8) / expected, 1, 1e-3)
          << "gather, " << chunks;
      EXPECT_NEAR(seconds_of(overlap_matmuls(mirrored, chunks), 8) / expected, 1, 1e-3)
          << "scatter, " << chunks;
    }
  }
}

// A gather runs beside (k-1)/k of its matmul: max(M (k-1)/k, C) + M/k. A scatter begins after a
// k-th and its last k-th comes after the matmul: M/k + max(M (k-1)/k, C (k-1)/k) + C/k.
TEST(CollectiveMatmulTest, APieceOfAnExchangeIsLeftOver) {
  const double moves = 7.0 / 8 * 4e9 / 100e9;
  for (const double math : {0.3 * moves, 0.7 * moves, 1.9 * moves}) {
    const std::vector<LayerStep> gather = {
        collective(CollectiveOp::kAllGather, Bytes(4'000'000'000)),
        compute({Kernel{.name = "rounding"}, matmul("up", math * 1e15)})};
    const std::vector<LayerStep> scatter = {
        compute({matmul("down", math * 1e15)}),
        collective(CollectiveOp::kReduceScatter, Bytes(4'000'000'000))};
    for (const std::int64_t pieces : {2, 4, 8}) {
      const double piece = 1.0 / static_cast<double>(pieces);
      const double rest = 1 - piece;
      EXPECT_NEAR(seconds_of(exchange_beside_matmuls(gather, pieces), 8) /
                      (std::max(math * rest, moves) + math * piece),
                  1, 1e-3)
          << "gather, " << pieces;
      EXPECT_NEAR(seconds_of(exchange_beside_matmuls(scatter, pieces), 8) /
                      (math * piece + rest * std::max(math, moves) + moves * piece),
                  1, 1e-3)
          << "scatter, " << pieces;
    }
  }
}

// Nothing is lost: rows, bytes, what is kept and let go. Other lanes stay as they are.
TEST(CollectiveMatmulTest, ExchangesInPiecesDoTheSame) {
  const std::vector<LayerStep> steps = exchange_beside_matmuls(block(Bytes(1006), 9e9), 4);
  std::vector<Kind> kinds;
  for (const LayerStep& step : steps) kinds.push_back(step.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kDetached, Kind::kCompute, Kind::kCompute,
                                      Kind::kDetached, Kind::kCompute, Kind::kCollective}));
  const Totals all(steps);
  EXPECT_EQ(all.gathered, Bytes(1006));
  EXPECT_EQ(all.scattered, Bytes(1006));
  EXPECT_EQ(all.kept, Bytes(7));
  EXPECT_EQ(all.let_go, Bytes(9));
  EXPECT_EQ(all.rows, 2000);
  EXPECT_EQ(steps[1].kernels.front().m, 750);
  EXPECT_EQ(steps[2].kernels.size(), 3U) << "a quarter of up, the activation, a quarter of down";

  std::vector<LayerStep> others = block(Bytes(1000), 1e9);
  others[0].lane = Lane::kExperts;
  others[2].kind = Kind::kDetached;
  EXPECT_EQ(exchange_beside_matmuls(others, 4).size(), 3U);
}

}  // namespace
}  // namespace stepsim
