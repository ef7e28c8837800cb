#include "workload/parts/adapters.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

// Returns a matmul that adds its result to what is in memory.
Kernel adding(Kernel kernel) {
  kernel.read += kernel.written;
  return kernel;
}

// Without a weight gradient no operand of it is made: a rounding that writes the gradient of the
// result both ways writes it once.
void drop_operands_of_weight_gradient(LayerOp& op, const DataTypes& types) {
  for (Kernel& kernel : op.input_gradient) {
    if (kernel.use != KernelUse::kRoundGradient) continue;
    const auto values = static_cast<std::int64_t>(kernel.flops.value() / 2);
    const bool both_ways = kernel.written >= 2 * bytes_of(values, types.matmul);
    if (both_ways) kernel.written = Bytes(kernel.written.value() / 2);
  }
}

void freeze(LayerOp& op, const DataTypes& types) {
  op.parameters.frozen = op.parameters.own;
  op.parameters.own = 0;
  op.weight_gradient.clear();
  drop_operands_of_weight_gradient(op, types);
  op.tensor.regathers_input = false;  // for the weight gradient
}

// The adapter reads the input wide, so tensor ranks gather it wide, and round all of it.
void gather_wide(LayerOp& op, std::int64_t values, const DataTypes& types) {
  if (!op.tensor.input_gathered_as) return;
  op.tensor.input_gathered_as.reset();
  for (Kernel& kernel : op.forward) {
    if (kernel.use != KernelUse::kRoundInput) continue;
    const double own = kernel.flops.value() / 2;
    const double ranks = static_cast<double>(values) / own;
    const auto all = [ranks](Bytes bytes) {
      return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value()) * ranks));
    };
    kernel =
        rounding(kernel.name, types.activations, values, all(kernel.read), all(kernel.written));
    kernel.use = KernelUse::kRoundInput;
  }
}

void adapt(LayerOp& op, std::int64_t rank, const DataTypes& types) {
  const Kernel base = *weights_matmul(op);
  const MatmulTypes product{types.activations, types.activations};
  const MatmulTypes gradient{types.activations, types.gradients};
  const std::int64_t rows = base.m, outputs = base.n, inputs = base.k;
  op.parameters.frozen = op.parameters.own;
  drop_operands_of_weight_gradient(op, types);
  gather_wide(op, rows * inputs, types);
  const std::vector<Kernel> beside = {
      matmul("adapter_down", product, {.m = rows, .n = rank, .k = inputs}),
      adding(matmul("adapter_up", product, {.m = rows, .n = outputs, .k = rank}))};
  op.forward.insert(op.forward.end(), beside.begin(), beside.end());
  if (!op.again.empty()) op.again.insert(op.again.end(), beside.begin(), beside.end());
  op.input_gradient.push_back(matmul("adapter_up", product, {.m = rows, .n = rank, .k = outputs}));
  op.input_gradient.push_back(
      adding(matmul("adapter_down", product, {.m = rows, .n = inputs, .k = rank})));
  op.weight_gradient = {
      accumulating_matmul("adapter_up", gradient, {.m = outputs, .n = rank, .k = rows}),
      accumulating_matmul("adapter_down", gradient, {.m = rank, .n = inputs, .k = rows})};
  op.parameters.own = rank * (inputs + outputs);
  op.saved.total += rows * rank * size_of(types.activations);
}

// QLoRA's scales, quantised again (section 3): 8 bits for 64 values and 32 for 256 of those.
constexpr double kScaleBits = 8.0 / 64 + 32.0 / (64 * 256);

// Returns how many values of a type take as many bytes.
std::int64_t part_of_type(Bytes bytes, DataType type) {
  const std::int64_t each = size_of(type).value();
  return (bytes.value() + each - 1) / each;
}

Bytes held_size(std::int64_t values, DataType type) {
  const double bits = static_cast<double>(bits_of(type)) + (bits_of(type) == 4 ? kScaleBits : 0);
  return Bytes(static_cast<std::int64_t>(std::ceil(static_cast<double>(values) * bits / 8)));
}

// Holds the frozen matrices of an op, of `experts` experts or one, in a narrower type. The wide one
// lives while the op runs.
void hold_narrow(LayerOp& op, std::int64_t experts, DataType type, const DataTypes& types) {
  const std::int64_t values = op.parameters.frozen;
  const Bytes held = held_size(values, type);
  const Bytes wide = bytes_of(values, types.activations);
  const Kernel widen{.name = "widen_weights",
                     .type = types.activations,
                     .flops = Flops(2 * static_cast<double>(values)),
                     .read = held,
                     .written = wide};
  const Bytes one = wide / experts;  // at a time
  const auto begin_with = [&widen](std::vector<Kernel>& kernels) {
    kernels.insert(kernels.begin(), widen);
  };
  begin_with(op.forward);
  if (!op.again.empty()) begin_with(op.again);
  begin_with(op.input_gradient);
  op.workspace.forward += one;
  op.workspace.backward += one;
  op.parameters.frozen = part_of_type(held, types.weights);
}

void freeze_all(Layer& layer, const DataTypes& types) {
  for (LayerOp& op : layer.ops) freeze(op, types);
}

// Returns whether an op reads results from outside its stretch of the T region, which begins at
// `first`: what the stretch gathers.
bool reads_gathered(const Layer& layer, std::size_t first, const LayerOp& op) {
  if (op.reads.empty()) return &op == &layer.ops[first];
  return std::ranges::none_of(op.reads, [&](OpName source) {
    const auto begin = layer.ops.begin() + static_cast<std::ptrdiff_t>(first);
    return std::find_if(begin, layer.ops.end(), [source](const LayerOp& other) {
             return other.name == source;
           }) != layer.ops.end();
  });
}

// One gather serves all that read it in a stretch of the T region. If the op that gathered again
// for its weight gradient is frozen, the first adapter that reads the same does.
void move_regathers(const Layer& whole, Layer& layer) {
  std::size_t end = 0;
  for (std::size_t first = 0; first < layer.ops.size(); first = std::max(end, first + 1)) {
    if (!is_tensor(layer.ops[first])) continue;
    bool gathered = false;
    bool gathers = false;
    for (end = first; end < layer.ops.size() && is_tensor(layer.ops[end]); ++end) {
      gathered = gathered || whole.ops[end].tensor.regathers_input;
      gathers = gathers || layer.ops[end].tensor.regathers_input;
    }
    if (!gathered || gathers) continue;
    const auto begin = layer.ops.begin() + static_cast<std::ptrdiff_t>(first);
    const auto last = layer.ops.begin() + static_cast<std::ptrdiff_t>(end);
    const auto reader = std::find_if(begin, last, [&](const LayerOp& op) {
      return !op.weight_gradient.empty() && reads_gathered(layer, first, op);
    });
    if (reader != last) reader->tensor.regathers_input = true;
  }
}

AdapterPlace place_of(const LayerOp& op) {
  switch (op.name.side()) {
    case OpSide::kOut:
      return AdapterPlace::kOut;
    case OpSide::kMlp:
      return AdapterPlace::kMlp;
    case OpSide::kIn:
      break;
  }
  return AdapterPlace::kQkv;
}

bool gets_adapter(const LayerOp& op, const Adapters& adapters) {
  const bool routed = op.region == Region::kExpert || op.name.role() == OpRole::kRouter;
  return !routed && weights_matmul(op) != nullptr &&
         std::ranges::count(adapters.places, place_of(op)) > 0;
}

}  // namespace

std::string_view name_of(AdapterPlace place) {
  constexpr std::array<std::string_view, kAdapterPlaces> kNames = {"qkv", "out", "mlp"};
  return kNames[static_cast<std::size_t>(place)];
}

ModelLayers with_adapters(ModelLayers layers, const Adapters& adapters, const DataTypes& types) {
  assert(adapters.rank >= 1 && layers.prediction.empty());
  freeze_all(layers.embedding, types);
  freeze_all(layers.head, types);
  for (Layer& block : layers.blocks) {
    const Layer whole = block;
    for (LayerOp& op : block.ops) {
      const Kernel* const matmul = weights_matmul(op);
      const std::int64_t experts = matmul == nullptr ? 0 : std::max<std::int64_t>(1, matmul->batch);
      if (gets_adapter(op, adapters)) {
        adapt(op, adapters.rank, types);
      } else {
        freeze(op, types);
      }
      if (adapters.frozen && experts > 0) hold_narrow(op, experts, *adapters.frozen, types);
    }
    move_regathers(whole, block);
  }
  return layers;
}

std::int64_t adapter_parameter_count(const ModelSpec& model, const Adapters& adapters) {
  assert(adapters.rank >= 1 && model.kind == ModelKind::kTransformer);
  const Shard whole{.sequence_length = 1};
  const ModelLayers layers = with_adapters(build_layers(model, whole), adapters, whole.types);
  std::int64_t sum = 0;
  for (const std::uint32_t kind : layers.kind_of_block) sum += layers.blocks[kind].parameters();
  return sum;
}

}  // namespace stepsim
