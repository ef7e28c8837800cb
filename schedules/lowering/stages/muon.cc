#include "schedules/lowering/stages/muon.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "schedules/lowering/stages/optimizer.h"
#include "schedules/plan/axis.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

std::vector<WeightMatrix> matrices_of_stage(const Stage& stage, bool experts) {
  std::vector<WeightMatrix> matrices;
  for (const StageChunk& chunk : stage.chunks) {
    for (const StageUnit& unit : chunk.units) {
      std::ranges::copy_if(
          unit.layer->matrices, std::back_inserter(matrices),
          [experts](const WeightMatrix& matrix) { return matrix.routed == experts; });
    }
  }
  return matrices;
}

double work_of(const WeightMatrix& matrix) {
  const auto a = static_cast<double>(std::min(matrix.rows, matrix.columns));
  const auto b = static_cast<double>(std::max(matrix.rows, matrix.columns));
  return 4 * a * a * b + 2 * a * a * a;
}

void add_steps(const WeightMatrix& matrix, std::int64_t steps, std::vector<Kernel>& kernels) {
  const std::int64_t a = std::min(matrix.rows, matrix.columns);
  const std::int64_t b = std::max(matrix.rows, matrix.columns);
  const MatmulTypes types{DataType::kBf16, DataType::kBf16};
  for (std::int64_t step = 0; step < steps; ++step) {
    kernels.push_back(matmul("newton_schulz", types, {.m = a, .n = a, .k = b}));
    kernels.push_back(matmul("newton_schulz", types, {.m = a, .n = a, .k = a}));
    kernels.push_back(matmul("newton_schulz", types, {.m = a, .n = b, .k = a}));
  }
}

// Reads gradient, weight and moment, writes the last two, the weight in its own type and the
// momentum in bf16, which becomes the update.
Kernel momentum(const OptimizerUpdate& optimizer, DataType weights, std::int64_t values) {
  const std::int64_t state = optimizer.optimizer_bytes - optimizer.second_moment_bytes;
  const std::int64_t update = size_of(DataType::kBf16).value();
  return {.name = "muon",
          .kind = KernelKind::kElementwise,
          .type = DataType::kFp32,
          .flops = Flops(8 * static_cast<double>(values)),
          .read = Bytes(values * (optimizer.gradient_bytes + state + update)),
          .written = Bytes(values * (state + update + size_of(weights).value()))};
}

// Brings whole matrices together, or divides their updates again.
OpRef exchange(Stage& stage, bool experts, std::vector<Dependency> after_ops) {
  const std::int64_t values =
      exchanged_values(matrix_values(stage, experts), stage.groups(experts).shards);
  return stage.add_collective(stage.builder.add_stream(experts ? "muon of experts" : "muon"),
                              {.communicator = *stage.groups(experts).parameters,
                               .op = CollectiveOp::kAllToAll,
                               .bytes = values * size_of(DataType::kBf16),
                               .type = DataType::kBf16},
                              Axis::kData, stage.label("exchange matrices"), std::move(after_ops));
}

}  // namespace

std::int64_t matrix_values(const Stage& stage, bool experts) {
  std::int64_t values = 0;
  for (const WeightMatrix& matrix : matrices_of_stage(stage, experts)) values += matrix.values();
  return values;
}

std::vector<WeightMatrix> own_matrices(std::vector<WeightMatrix> matrices, std::int64_t shards) {
  std::vector<WeightMatrix> single;
  for (WeightMatrix matrix : matrices) {
    const auto count = static_cast<std::size_t>(std::exchange(matrix.count, 1));
    single.insert(single.end(), count, matrix);
  }
  if (shards <= 1) return single;
  std::ranges::stable_sort(single, std::greater<>{}, &work_of);
  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  std::vector<std::vector<WeightMatrix>> of(
      std::min(single.size(), static_cast<std::size_t>(shards)));
  if (of.empty()) return {};
  for (std::size_t shard = 0; shard < of.size(); ++shard) least.emplace(0.0, shard);
  Load busiest{0, 0};
  for (const WeightMatrix& matrix : single) {
    Load load = least.top();
    least.pop();
    of[load.second].push_back(matrix);
    load.first += work_of(matrix);
    if (load.first > busiest.first) busiest = load;
    least.push(load);
  }
  return of[busiest.second];
}

OpRef add_muon(Stage& stage, std::vector<Dependency> dependencies) {
  const OptimizerUpdate& update = stage.plan.update;
  const int zero = stage.plan.state.zero;
  std::vector<Kernel> kernels;
  std::int64_t others = stage.updated_parameters();
  std::vector<OpRef> gathered;
  for (const bool experts : {false, true}) {
    const std::int64_t shards = zero >= 1 ? stage.groups(experts).shards : 1;
    const std::int64_t values = part_of(matrix_values(stage, experts), shards);
    if (values == 0) continue;
    others -= values;
    kernels.push_back(momentum(update, stage.plan.weights(), values));
    for (const WeightMatrix& matrix : own_matrices(matrices_of_stage(stage, experts), shards)) {
      add_steps(matrix, update.newton_schulz_steps, kernels);
    }
    if (zero == 3 && shards > 1) {
      gathered.push_back(exchange(stage, experts, dependencies));
    }
  }
  for (const OpRef& op : gathered) dependencies.push_back(after(op));
  kernels.push_back(adam_kernel(update, stage.plan.weights(), std::max<std::int64_t>(0, others)));
  OpRef last = add_update(stage, kernels, std::move(dependencies));
  if (!gathered.empty()) {
    std::vector<Dependency> divided;
    for (const bool experts : {false, true}) {
      const std::int64_t shards = stage.groups(experts).shards;
      if (matrix_values(stage, experts) == 0 || shards <= 1) continue;
      divided.push_back(after(exchange(stage, experts, {after(last)})));
    }
    last = add_update(stage, {}, std::move(divided));
  }
  return last;
}

}  // namespace stepsim
