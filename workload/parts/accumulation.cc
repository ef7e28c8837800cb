#include "workload/parts/accumulation.h"

#include <utility>

#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

constexpr DataType kMade = DataType::kBf16;

// Returns a matmul that writes its result in 16 bits, over what was there.
Kernel writing_narrow(Kernel kernel) {
  const Bytes wide = kernel.written;
  kernel.read -= wide;
  kernel.written = Bytes(wide.value() / size_of(DataType::kFp32).value() * size_of(kMade).value());
  kernel.accumulates = false;
  return kernel;
}

void add_up_separately(LayerOp& op) {
  for (Kernel& kernel : op.weight_gradient) {
    if (kernel.accumulates) kernel = writing_narrow(kernel);
  }
  if (op.parameters.own == 0 || op.weight_gradient.empty()) return;  // another op has its sums
  const Bytes narrow = op.parameters.own * size_of(kMade);
  const Bytes wide = op.parameters.own * size_of(DataType::kFp32);
  op.weight_gradient.push_back(
      rounding("widen_gradient", DataType::kFp32, op.parameters.own, narrow, wide));
  op.weight_gradient.push_back(
      elementwise("add_gradient", DataType::kFp32,
                  {.elements = op.parameters.own, .reads = 2, .writes = 1, .flops = 1}));
}

void add_up_separately(Layer& layer) {
  for (LayerOp& op : layer.ops) add_up_separately(op);
}

}  // namespace

ModelLayers with_separate_accumulation(ModelLayers layers) {
  add_up_separately(layers.embedding);
  add_up_separately(layers.head);
  for (Layer& block : layers.blocks) add_up_separately(block);
  for (PredictionModule& module : layers.prediction) {
    add_up_separately(module.entry);
    add_up_separately(module.head);
  }
  return layers;
}

}  // namespace stepsim
