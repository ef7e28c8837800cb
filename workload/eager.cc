#include "workload/eager.h"

#include <iterator>
#include <utility>
#include <vector>

#include "sim/chips/kernel.h"

namespace stepsim {
namespace {

// A pass over all elements: values that it reads and writes of each, in the type of the activations
// and in fp32.
struct EagerPass {
  int narrow_reads = 0;
  int wide_reads = 0;
  int narrow_writes = 0;
  int wide_writes = 0;
};
using EagerPasses = std::vector<EagerPass>;

constexpr EagerPass kWiden{.narrow_reads = 1, .wide_writes = 1};
constexpr EagerPass kNarrow{.wide_reads = 1, .narrow_writes = 1};
constexpr EagerPass kWideMap{.wide_reads = 1, .wide_writes = 1};
constexpr EagerPass kWideProduct{.wide_reads = 2, .wide_writes = 1};
constexpr EagerPass kWideSum{.wide_reads = 1};
constexpr EagerPass kMap{.narrow_reads = 1, .narrow_writes = 1};
constexpr EagerPass kProduct{.narrow_reads = 2, .narrow_writes = 1};
constexpr EagerPass kSum{.narrow_reads = 1};

struct EagerKernels {
  EagerPasses forward;
  EagerPasses backward;
  // Values that stay for the backward beyond what the one kernel keeps, in the type of the
  // activations and in fp32.
  int kept_narrow = 0;
  int kept_wide = 0;
};

const EagerKernels& rms_norm() {
  static const EagerKernels kKernels{
      .forward = {kWiden, kWideMap, kWideSum, kWideMap, kNarrow, kMap},
      // Weight: gradient of its input, its own product and sum. Cast. Scale: gradient of the
      // values, of the scale, and through the square. Sum of both, cast.
      .backward = {kMap, kProduct, kSum, kWiden, kWideMap, kWideProduct, kWideSum, kWideMap,
                   kWideMap, kWideProduct, kNarrow},
      // The values in fp32, for square and scale, and rounded, for the weight; not the input.
      .kept_narrow = 0,
      .kept_wide = 1};
  return kKernels;
}

const EagerKernels& rotation() {
  static const EagerKernels kKernels{.forward = {kWiden, kWideMap, kNarrow},
                                     .backward = {kWiden, kWideMap, kNarrow}};
  return kKernels;
}

const EagerKernels& gated_activation() {
  static const EagerKernels kKernels{.forward = {kMap, kProduct},
                                     .backward = {kProduct, kProduct, kProduct},
                                     .kept_narrow = 1};  // of SiLU, for the product
  return kKernels;
}

const EagerKernels* eager_kernels(const LayerOp& op, const ModelSpec& model) {
  if (op.forward.empty()) return nullptr;
  const Kernel& kernel = op.forward.front();
  if (kernel.kind != KernelKind::kElementwise) return nullptr;
  if (kernel.elementwise == ElementwiseKind::kRope) return &rotation();
  if (kernel.elementwise == ElementwiseKind::kNorm) {
    return model.norm == NormKind::kRms ? &rms_norm() : nullptr;
  }
  return model.gated_mlp && op.name.ends_with("_activation") ? &gated_activation() : nullptr;
}

// Replaces the kernel that carries the op's name by its passes over `elements` values.
std::vector<Kernel> in_passes(const std::vector<Kernel>& kernels, std::string_view name,
                              const EagerPasses& passes, std::int64_t elements, DataType type) {
  std::vector<Kernel> result;
  const Bytes narrow = bytes_of(elements, type), wide = elements * size_of(DataType::kFp32);
  for (const Kernel& kernel : kernels) {
    if (kernel.name != name || kernel.kind != KernelKind::kElementwise) {
      result.push_back(kernel);
      continue;
    }
    for (const EagerPass& pass : passes) {
      Kernel part = kernel;
      part.elementwise = ElementwiseKind::kPlain;
      part.flops = Flops(static_cast<double>(elements));
      part.read = pass.narrow_reads * narrow + pass.wide_reads * wide;
      part.written = pass.narrow_writes * narrow + pass.wide_writes * wide;
      result.push_back(part);
    }
  }
  return result;
}

void make_eager(LayerOp& op, const ModelSpec& model, DataType type) {
  const EagerKernels* const eager = eager_kernels(op, model);
  if (eager == nullptr) return;
  const std::int64_t elements = op.forward.front().written.value() / size_of(type).value();
  if (!op.again.empty()) op.again = in_passes(op.again, op.name, eager->forward, elements, type);
  op.forward = in_passes(op.forward, op.name, eager->forward, elements, type);
  op.input_gradient = in_passes(op.input_gradient, op.name, eager->backward, elements, type);
  if (type == DataType::kFp32) return;  // a cast to fp32 copies nothing
  const Bytes kept = eager->kept_narrow * bytes_of(elements, type) +
                     eager->kept_wide * (elements * size_of(DataType::kFp32));
  op.saved += kept;
  op.saved_inside += kept;
}

void make_eager(Layer& layer, const ModelSpec& model, DataType type) {
  for (LayerOp& op : layer.ops) make_eager(op, model, type);
}

}  // namespace

ModelLayers with_eager_kernels(ModelLayers layers, const ModelSpec& model, DataType activations) {
  make_eager(layers.embedding, model, activations);
  make_eager(layers.head, model, activations);
  for (Layer& block : layers.blocks) make_eager(block, model, activations);
  for (PredictionModule& module : layers.prediction) {
    make_eager(module.entry, model, activations);
    make_eager(module.head, model, activations);
  }
  return layers;
}

}  // namespace stepsim
