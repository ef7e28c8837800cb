#include "schedules/lowering/stages/optimizer.h"

#include <set>
#include <string>
#include <utility>

#include "schedules/lowering/stages/muon.h"
#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

constexpr double kAdamFlops = 15;  // per parameter
constexpr double kNormFlops = 2;

// Returns the bytes of one tensor for each matrix shape of the stage's blocks, in the type of the
// weights. Experts have one matrix each, all of the same shape.
Bytes block_placeholders(const Stage& stage) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const StageChunk& chunk : stage.chunks) {
    for (const StageUnit& unit : chunk.units) {
      if (!unit.block) continue;
      for (const LayerStep& step : unit.layer->split_backward) {
        if (!step.weight_gradient) continue;
        for (const Kernel& kernel : step.kernels) {
          if (kernel.kind == KernelKind::kMatmul) shapes.emplace(kernel.m, kernel.n);
        }
      }
    }
  }
  std::int64_t values = 0;
  for (const auto& [rows, columns] : shapes) values += rows * columns;
  return values * size_of(stage.plan.weights());
}

// Returns the bytes of weights as narrow matmuls read them, which stay beside the weights.
Bytes narrow_copies(const Stage& stage) {
  const NarrowTypes& narrow = stage.plan.narrow;
  const DataType type = stage.plan.precision.type;
  if (!narrow.keep_narrow_weights || stage.plan.state.zero == 3 || narrow.round_weights)
    return Bytes(0);
  std::int64_t values = 0;
  for (const StageChunk& chunk : stage.chunks) {
    for (const StageUnit& unit : chunk.units) values += unit.layer->narrow_weights;
  }
  const bool both_ways =
      (narrow.scales_rows(type) || narrow.transpose_operands) && !narrow.transpose_weights;
  const std::int64_t copies = (both_ways ? 2 : 1) - (stage.plan.weights() == type ? 1 : 0);
  return copies * bytes_of(values, type);
}

OpRef add_compute(Stage& stage, const std::vector<Kernel>& kernels, const std::string& name,
                  std::vector<Dependency> dependencies) {
  OpDraft op{.stream = stage.compute, .kind = OpKind::kCompute};
  op.work = stage.tables.compute(kernels, static_cast<std::uint32_t>(PathLabel::kOptimizer));
  op.label = stage.label(name);
  op.dependencies = std::move(dependencies);
  return stage.builder.add(std::move(op));
}

}  // namespace

void hold_model_state(Stage& stage, Bytes fixed_memory) {
  const ParallelPlan& plan = stage.plan;
  if (plan.is_inference()) {
    stage.builder.hold(MemoryCategory::kParameters, stage.weights);
    stage.builder.hold(MemoryCategory::kCache, stage.cache);
    stage.builder.hold(MemoryCategory::kFixedOverhead, fixed_memory);
    return;
  }
  for (const bool experts : {false, true}) {
    const std::int64_t held = stage.parameters_of(experts);
    const std::int64_t shards = stage.groups(experts).shards;
    const auto hold = [&](MemoryCategory category, std::int64_t bytes, bool divided) {
      stage.builder.hold(category, Bytes(part_of(bytes, divided ? shards : 1)));
    };
    // Returns the divided weights whose fp32 master copy the optimizer may share.
    const std::int64_t master = plan.buffers.shared_master ? size_of(DataType::kFp32).value() : 0;
    const std::int64_t weight =
        plan.buffers.shared_master ? master : size_of(plan.weights()).value();
    const std::int64_t frozen = stage.frozen_of(experts) * size_of(plan.weights()).value();
    hold(MemoryCategory::kParameters, held * weight + frozen, plan.state.zero == 3);
    if (plan.update.hold_gradients && !plan.update.free_gradients) {
      hold(MemoryCategory::kGradients, held * plan.held_gradient_bytes(), plan.state.zero >= 2);
    }
    const std::int64_t state =
        plan.training.optimizer == Optimizer::kNone ? 0 : plan.update.optimizer_bytes - master;
    if (!plan.offload.optimizer) {
      const std::int64_t without =
          plan.training.optimizer == Optimizer::kMuon
              ? matrix_values(stage, experts) * plan.update.second_moment_bytes
              : 0;
      hold(MemoryCategory::kOptimizer, held * state - without, plan.state.zero >= 1);
    }
  }
  stage.builder.hold(MemoryCategory::kParameters, narrow_copies(stage));
  if (plan.buffers.gradient_placeholders) {
    stage.builder.hold(MemoryCategory::kBuffers, block_placeholders(stage));
  }
  stage.builder.hold(MemoryCategory::kFixedOverhead, fixed_memory);
}

std::vector<Dependency> add_gradient_norm(Stage& stage, std::vector<Dependency> dependencies) {
  if (!stage.plan.update.clip_gradients) return dependencies;
  const std::int64_t updated = stage.updated_parameters();
  const Kernel squares{.name = "gradient_norm",
                       .kind = KernelKind::kElementwise,
                       .type = DataType::kFp32,
                       .flops = Flops(kNormFlops * static_cast<double>(updated)),
                       .read = Bytes(updated * stage.plan.update.gradient_bytes)};
  const OpRef own = add_compute(stage, {squares}, "gradient norm", std::move(dependencies));
  OpRef norm = own;
  if (stage.communicators.norm) {
    norm = stage.add_collective(stage.builder.add_stream("gradient norm"),
                                {.communicator = *stage.communicators.norm,
                                 .op = CollectiveOp::kAllReduce,
                                 .bytes = size_of(DataType::kFp32),
                                 .type = DataType::kFp32},
                                Axis::kOther, stage.label("reduce gradient norm"), {after(own)});
  }
  stage.builder.wait_on_host(norm);  // it reads the norm
  return {after(norm)};
}

Kernel adam_kernel(const OptimizerUpdate& update, DataType weights, std::int64_t parameters) {
  return {.name = "adam",
          .kind = KernelKind::kElementwise,
          .type = DataType::kFp32,
          .flops = Flops(kAdamFlops * static_cast<double>(parameters)),
          .read = Bytes(parameters * (update.gradient_bytes + update.optimizer_bytes)),
          .written = Bytes(parameters * (update.optimizer_bytes + size_of(weights).value()))};
}

OpRef add_update(Stage& stage, const std::vector<Kernel>& kernels,
                 std::vector<Dependency> dependencies) {
  return add_compute(stage, kernels, "optimizer", std::move(dependencies));
}

OpRef add_adam(Stage& stage, std::int64_t parameters, std::vector<Dependency> dependencies) {
  return add_update(stage, {adam_kernel(stage.plan.update, stage.plan.weights(), parameters)},
                    std::move(dependencies));
}

OpRef add_optimizer(Stage& stage, std::vector<Dependency> dependencies) {
  if (stage.plan.training.optimizer == Optimizer::kMuon) {
    return add_muon(stage, std::move(dependencies));
  }
  if (stage.plan.training.optimizer == Optimizer::kAdam) {
    const std::int64_t updated = stage.updated_parameters();
    const OpRef adam = add_adam(stage, updated, std::move(dependencies));
    const Bytes scratch(updated * stage.plan.update.optimizer_scratch_bytes);
    if (scratch > Bytes(0)) {
      for (const bool at_end : {false, true}) {
        stage.builder.change_memory(
            adam, {.category = MemoryCategory::kBuffers, .at_end = at_end, .bytes = scratch});
      }
    }
    return adam;
  }
  // Without kernels the op takes no time. The parameters of the next step wait for it.
  return add_compute(stage, {}, "optimizer", std::move(dependencies));
}

}  // namespace stepsim
