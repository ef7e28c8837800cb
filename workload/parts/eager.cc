#include "workload/parts/eager.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/chips/kernel.h"

namespace stepsim {
namespace {

// A pass over all elements: values that it reads and writes of each, in the type of the activations
// and in fp32. `launches`: with kernels beside it that move next to nothing (one value a row), or
// one for each tensor that it stands for.
struct EagerPass {
  int narrow_reads = 0;
  int wide_reads = 0;
  int narrow_writes = 0;
  int wide_writes = 0;
  int launches = 1;
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

constexpr EagerPass with_launches(EagerPass pass, int launches) {
  pass.launches = launches;
  return pass;
}

struct KernelPasses {
  EagerPasses forward;
  EagerPasses backward;
  // Values that stay for the backward beyond what the one kernel keeps, in the type of the
  // activations and in fp32.
  int kept_narrow = 0;
  int kept_wide = 0;
};

const KernelPasses& rms_norm() {
  static const KernelPasses kKernels{
      // The mean, epsilon and the root are three launches.
      .forward = {kWiden, kWideMap, with_launches(kWideSum, 3), kWideMap, kNarrow, kMap},
      // Weight: gradient of its input, its own product and sum. Cast. Scale: gradient of the
      // values, of the scale (with the root's three products and the mean's division), and through
      // the square. Sum of both, cast.
      .backward = {kMap, kProduct, kSum, kWiden, kWideMap, kWideProduct, with_launches(kWideSum, 5),
                   kWideMap, kWideMap, kWideProduct, kNarrow},
      // The values in fp32, for square and scale, and rounded, for the weight; not the input.
      .kept_narrow = 0,
      .kept_wide = 1};
  return kKernels;
}

const KernelPasses& rotation() {
  // Queries and keys, each by two products, a negation, a join and a sum (rotate_half of Hugging
  // Face); their gradients by eight launches.
  static const KernelPasses kKernels{
      .forward = {with_launches(kWiden, 4), with_launches(kWideMap, 2), with_launches(kNarrow, 4)},
      .backward = {with_launches(kWiden, 6), with_launches(kWideMap, 4),
                   with_launches(kNarrow, 6)}};
  return kKernels;
}

const KernelPasses& gated_activation() {
  static const KernelPasses kKernels{.forward = {kMap, kProduct},
                                     .backward = {kProduct, kProduct, kProduct},
                                     .kept_narrow = 1};  // of SiLU, for the product
  return kKernels;
}

const KernelPasses* passes_of(const LayerOp& op, const ModelSpec& model, EagerKernels which) {
  if (op.forward.empty()) return nullptr;
  const Kernel& kernel = op.forward.front();
  if (kernel.kind != KernelKind::kElementwise) return nullptr;
  if (model.mlp.gated && op.name.role() == OpRole::kActivation) return &gated_activation();
  if (which == EagerKernels::kGate) return nullptr;
  if (kernel.elementwise == ElementwiseKind::kRope) return &rotation();
  if (kernel.elementwise == ElementwiseKind::kNorm) {
    return model.norms.kind == NormKind::kRms ? &rms_norm() : nullptr;
  }
  return nullptr;
}

// Replaces the kernel that does what `main` does by its passes over `elements` values. What rounds,
// widens or joins beside it stays.
std::vector<Kernel> in_passes(const std::vector<Kernel>& kernels, const Kernel& main,
                              const EagerPasses& passes, std::int64_t elements, DataType type) {
  std::vector<Kernel> result;
  const Bytes narrow = bytes_of(elements, type), wide = elements * size_of(DataType::kFp32);
  for (const Kernel& kernel : kernels) {
    const bool is_main = kernel.kind == KernelKind::kElementwise && kernel.use == main.use &&
                         kernel.elementwise == main.elementwise;
    if (!is_main) {
      result.push_back(kernel);
      continue;
    }
    for (const EagerPass& pass : passes) {
      Kernel part = kernel;
      part.elementwise = ElementwiseKind::kPlain;
      part.flops = Flops(static_cast<double>(elements));
      part.read = pass.narrow_reads * narrow + pass.wide_reads * wide;
      part.written = pass.narrow_writes * narrow + pass.wide_writes * wide;
      part.launches = static_cast<std::uint16_t>(pass.launches);
      result.push_back(part);
    }
  }
  return result;
}

// Matrices that stand side by side are multiplied one by one, and what they give back to their
// common input is added up. Adding to gradients is a launch of its own, as is each of the two
// kernels around attention's backward.
void launch_one_by_one(LayerOp& op, DataType type) {
  const auto matrices = static_cast<std::uint16_t>(std::max<std::size_t>(1, op.columns.size()));
  for (std::vector<Kernel>* const kernels :
       {&op.forward, &op.again, &op.input_gradient, &op.weight_gradient}) {
    for (Kernel& kernel : *kernels) {
      if (kernel.kind == KernelKind::kAttentionBackward) kernel.launches = 3;
      if (kernel.kind != KernelKind::kMatmul) continue;
      kernel.launches = static_cast<std::uint16_t>(kernel.accumulates ? 2 * matrices : matrices);
    }
  }
  if (op.input_gradient.empty() || matrices == 1) return;
  Kernel sum = op.input_gradient.front();
  sum = {.name = sum.name, .kind = KernelKind::kElementwise, .type = type};
  const std::int64_t elements = op.saved.input.value() / size_of(type).value();
  sum.flops = Flops(static_cast<double>(elements));
  sum.read = 2 * bytes_of(elements, type);
  sum.written = bytes_of(elements, type);
  for (std::uint16_t i = 1; i < matrices; ++i) op.input_gradient.push_back(sum);
}

void make_eager(LayerOp& op, const ModelSpec& model, DataType type, EagerKernels which) {
  launch_one_by_one(op, type);
  const KernelPasses* const eager = passes_of(op, model, which);
  if (eager == nullptr) return;
  const Kernel main = op.forward.front();
  const std::int64_t elements = main.written.value() / size_of(type).value();
  if (!op.again.empty()) op.again = in_passes(op.again, main, eager->forward, elements, type);
  op.forward = in_passes(op.forward, main, eager->forward, elements, type);
  op.input_gradient = in_passes(op.input_gradient, main, eager->backward, elements, type);
  if (type == DataType::kFp32) return;  // a cast to fp32 copies nothing
  const Bytes kept = eager->kept_narrow * bytes_of(elements, type) +
                     eager->kept_wide * (elements * size_of(DataType::kFp32));
  op.saved.total += kept;
  op.saved.inside += kept;
}

void make_eager(Layer& layer, const ModelSpec& model, DataType type, EagerKernels which) {
  for (LayerOp& op : layer.ops) make_eager(op, model, type, which);
}

// The matmuls of an op that share an input each copy it, and keep the copies in its place.
void copy_inputs(LayerOp& op, DataType type) {
  const bool by_columns = op.columns.size() > 1 || op.name.role() == OpRole::kUp ||
                          op.name.module() == OpModule::kLatentUp;
  if (op.region != Region::kTensor || weights_matmul(op) == nullptr || !by_columns) return;
  const auto copies = static_cast<std::int64_t>(std::max<std::size_t>(1, op.columns.size()));
  const std::int64_t elements = op.saved.input.value() / size_of(type).value();
  Kernel copy{.name = "copy_input", .kind = KernelKind::kElementwise, .type = type};
  copy.read = copy.written = bytes_of(elements, type);
  for (std::int64_t i = 0; i < copies; ++i) op.forward.push_back(copy);
  op.saved.total += (copies - 1) * op.saved.input;
  op.saved.inside += (copies - 1) * op.saved.input;
}

}  // namespace

ModelLayers with_eager_kernels(ModelLayers layers, const ModelSpec& model, DataType activations,
                               EagerKernels which) {
  make_eager(layers.embedding, model, activations, which);
  make_eager(layers.head, model, activations, which);
  for (Layer& block : layers.blocks) make_eager(block, model, activations, which);
  for (PredictionModule& module : layers.prediction) {
    make_eager(module.entry, model, activations, which);
    make_eager(module.head, model, activations, which);
  }
  return layers;
}

ModelLayers with_input_copies(ModelLayers layers, DataType activations) {
  for (Layer& block : layers.blocks) {
    for (LayerOp& op : block.ops) copy_inputs(op, activations);
  }
  return layers;
}

}  // namespace stepsim
