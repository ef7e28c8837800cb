#include "schedules/lowering/planned_bytes.h"

namespace stepsim {
namespace {

std::int64_t tensor_bytes(const ModelSpec& model, const ParallelPlan& plan,
                          const ModelLayers& layers) {
  if (plan.tp == 1) return 0;
  const std::int64_t boundary = layers.boundary.value();
  const std::int64_t n = plan.tp;
  // Whole boundaries that cross the group: an all-reduce counts as two.
  const bool divided = plan.sequence_parallel;
  const std::int64_t again = plan.recompute == Recompute::kFull ? 4 : 0;  // the forward's
  const std::int64_t block = (divided ? 10 : 8) + again;
  const std::int64_t embedding = 2;           // reduce-scatter and all-gather, or an all-reduce
  const std::int64_t head = divided ? 3 : 2;  // gather, reduce-scatter, gather again; all-reduce
  std::int64_t loss = 0;                      // fp32 values of every token, all-reduced
  for (const LayerOp& op : layers.head.ops) {
    loss += 2 * op.reduced_values_per_token * plan.microbatch * plan.sequence * 4;
  }
  const std::int64_t microbatch = (block * model.layers + embedding + head) * boundary + loss;
  return (n - 1) * microbatch * plan.microbatches() * plan.dp * plan.cp;
}

std::int64_t data_bytes(const ModelSpec& model, const ParallelPlan& plan,
                        const ModelLayers& layers) {
  const std::int64_t n = plan.dp * plan.cp;
  const std::int64_t table = layers.embedding.parameters();
  const std::int64_t copies = model.tied_embeddings && plan.pp > 1 ? 1 : 0;
  const std::int64_t parameters =
      table + model.layers * layers.block.parameters() + layers.head.parameters() + copies * table;
  const std::int64_t gradient = plan.gradient_bytes;
  const std::int64_t weight = size_of(plan.type).value();
  std::int64_t a_parameter = 2 * gradient;
  if (plan.zero == 1) a_parameter = gradient + weight;
  if (plan.zero == 3) a_parameter = (gradient + 2 * weight) * plan.microbatches();
  const std::int64_t tied = copies * 2 * table * gradient * n;
  return plan.tp * ((n - 1) * parameters * a_parameter + tied);
}

std::int64_t pipeline_bytes(const ParallelPlan& plan, const ModelLayers& layers) {
  const std::int64_t message = layers.boundary.value() / (plan.sequence_parallel ? plan.tp : 1);
  return 2 * (plan.pp - 1) * plan.microbatches() * message * plan.tp * plan.cp * plan.dp;
}

}  // namespace

std::array<Bytes, kAxes> planned_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                       const ModelLayers& layers) {
  std::array<Bytes, kAxes> bytes{};
  bytes[static_cast<std::size_t>(Axis::kTensor)] = Bytes(tensor_bytes(model, plan, layers));
  bytes[static_cast<std::size_t>(Axis::kData)] = Bytes(data_bytes(model, plan, layers));
  bytes[static_cast<std::size_t>(Axis::kPipeline)] = Bytes(pipeline_bytes(plan, layers));
  return bytes;
}

}  // namespace stepsim
