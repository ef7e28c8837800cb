#include "schedules/lowering/optimizer.h"

#include <utility>

namespace stepsim {
namespace {

constexpr double kAdamFlops = 15;  // a parameter

std::int64_t part(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

}  // namespace

void hold_model_state(Stage& stage, Bytes fixed_memory) {
  const ParallelPlan& plan = stage.plan;
  const std::int64_t held = stage.parameters();
  const auto hold = [&](MemoryCategory category, std::int64_t bytes, bool divided) {
    stage.builder.hold(category, Bytes(part(bytes, divided ? stage.replicas() : 1)));
  };
  hold(MemoryCategory::kParameters, held * size_of(plan.type).value(), plan.zero == 3);
  hold(MemoryCategory::kGradients, held * plan.gradient_bytes, plan.zero == 3);
  const std::int64_t state = plan.optimizer == Optimizer::kNone ? 0 : plan.optimizer_bytes;
  hold(MemoryCategory::kOptimizer, held * state, plan.zero >= 1);
  hold(MemoryCategory::kFixedOverhead, fixed_memory.value(), false);
}

OpRef add_optimizer(Stage& stage, std::vector<Dependency> dependencies) {
  const ParallelPlan& plan = stage.plan;
  const std::int64_t updated = part(stage.parameters(), plan.zero >= 1 ? stage.replicas() : 1);
  const Kernel adam{
      .name = "adam",
      .kind = KernelKind::kElementwise,
      .type = DataType::kFp32,
      .flops = Flops(kAdamFlops * static_cast<double>(updated)),
      .read = Bytes(updated * (plan.gradient_bytes + plan.optimizer_bytes)),
      .written = Bytes(updated * (plan.optimizer_bytes + size_of(plan.type).value()))};
  OpDraft optimizer{.stream = stage.compute, .kind = OpKind::kCompute};
  // Without kernels it takes no time: what the next step's parameters wait for.
  std::vector<Kernel> kernels;
  if (plan.optimizer == Optimizer::kAdam) kernels.push_back(adam);
  optimizer.work = stage.tables.compute(kernels, static_cast<std::uint32_t>(PathLabel::kOptimizer));
  optimizer.label = stage.label("optimizer");
  optimizer.dependencies = std::move(dependencies);
  return stage.builder.add(std::move(optimizer));
}

}  // namespace stepsim
