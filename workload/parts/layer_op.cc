#include "workload/parts/layer_op.h"

namespace stepsim {
namespace {

// Sums parameters of a sort over the ops of a region, or of all.
std::int64_t sum_of(const std::vector<LayerOp>& ops, std::int64_t OpParameters::*count,
                    std::optional<Region> region = {}) {
  std::int64_t sum = 0;
  for (const LayerOp& op : ops) sum += !region || op.region == *region ? op.parameters.*count : 0;
  return sum;
}

}  // namespace

DataTypes all_of_type(DataType type) {
  return {.weights = type,
          .activations = type,
          .matmul = type,
          .communication = type,
          .dispatch = type,
          .combine = type};
}

Bytes crossing_as(Bytes bytes, DataType crosses_in, std::optional<DataType> type) {
  if (!type || bits_of(*type) >= bits_of(crosses_in)) return bytes;
  return bytes_of(bytes.value() / size_of(crosses_in).value(), *type);
}

const Kernel* weights_matmul(const LayerOp& op) {
  const auto is_matmul = [](const Kernel& kernel) { return kernel.kind == KernelKind::kMatmul; };
  if (std::ranges::none_of(op.weight_gradient, is_matmul)) return nullptr;
  const auto found = std::find_if(op.forward.rbegin(), op.forward.rend(), is_matmul);
  return found == op.forward.rend() ? nullptr : &*found;
}

std::vector<WeightMatrix> matrices_of(const Layer& layer) {
  std::vector<WeightMatrix> matrices;
  for (const LayerOp& op : layer.ops) {
    const Kernel* const kernel = weights_matmul(op);
    if (kernel == nullptr || op.name.role() == OpRole::kHead) continue;
    if (op.parameters.own == 0) continue;  // another layer owns them, or they are frozen
    matrices.push_back({.rows = kernel->n,
                        .columns = kernel->k,
                        .count = op.parameters.own / (kernel->n * kernel->k),
                        .routed = op.region == Region::kExpert});
  }
  return matrices;
}

std::int64_t Layer::parameters() const {
  return sum_of(ops, &OpParameters::own);
}

std::int64_t Layer::parameters(Region region) const {
  return sum_of(ops, &OpParameters::own, region);
}

std::int64_t Layer::borrowed() const {
  return sum_of(ops, &OpParameters::borrowed);
}

Bytes Layer::lent() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved.lent;
  return sum;
}

std::int64_t Layer::frozen() const {
  return sum_of(ops, &OpParameters::frozen);
}

std::int64_t Layer::frozen(Region region) const {
  return sum_of(ops, &OpParameters::frozen, region);
}

Bytes Layer::saved() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved.total;
  return sum;
}

std::int64_t unembedding_parameters(const ModelLayers& layers) {
  for (const LayerOp& op : layers.head.ops) {
    if (op.name != OpName("unembedding")) continue;
    return op.parameters.own > 0 ? op.parameters.own : layers.embedding.ops.front().parameters.own;
  }
  return 0;
}

}  // namespace stepsim
