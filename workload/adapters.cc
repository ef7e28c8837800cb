#include "workload/adapters.h"

#include <algorithm>
#include <array>
#include <utility>

#include "workload/kernels.h"

namespace stepsim {
namespace {

// Returns a matmul that adds its result to what is in memory.
Kernel adding(Kernel kernel) {
  kernel.read += kernel.written;
  return kernel;
}

void freeze(LayerOp& op) {
  op.frozen = op.parameters;
  op.parameters = 0;
  op.weight_gradient.clear();
  op.regathers_input = false;  // for the weight gradient
}

void adapt(LayerOp& op, std::int64_t rank, const DataTypes& types) {
  const Kernel base = *weights_matmul(op);
  const MatmulTypes product{types.activations, types.activations};
  const MatmulTypes gradient{types.activations, types.gradients};
  const std::int64_t rows = base.m, outputs = base.n, inputs = base.k;
  op.frozen = op.parameters;
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
  op.parameters = rank * (inputs + outputs);
  op.saved += rows * rank * size_of(types.activations);
}

void freeze_all(Layer& layer) {
  for (LayerOp& op : layer.ops) freeze(op);
}

AdapterPlace place_of(const LayerOp& op) {
  const std::string_view name = op.name;
  if (name.ends_with("out_projection")) return AdapterPlace::kOut;
  const bool is_mlp = name == "up_projection" || name == "down_projection" ||
                      name == "gate_up_projection" || name.starts_with("shared_") ||
                      name.starts_with("latent_down") || name.starts_with("latent_up") ||
                      name.starts_with("layer_");
  return is_mlp ? AdapterPlace::kMlp : AdapterPlace::kQkv;
}

bool gets_adapter(const LayerOp& op, const Adapters& adapters) {
  const bool routed = op.region == Region::kExpert || op.name == "router";
  return !routed && weights_matmul(op) != nullptr &&
         std::ranges::count(adapters.places, place_of(op)) > 0;
}

}  // namespace

std::string_view name_of(AdapterPlace place) {
  constexpr std::array<std::string_view, kAdapterPlaces> kNames = {"qkv", "out", "mlp"};
  return kNames[static_cast<std::size_t>(place)];
}

ModelLayers with_adapters(ModelLayers layers, const Adapters& adapters, const DataTypes& types) {
  freeze_all(layers.embedding);
  freeze_all(layers.head);
  for (Layer& block : layers.blocks) {
    for (LayerOp& op : block.ops) {
      if (gets_adapter(op, adapters)) {
        adapt(op, adapters.rank, types);
      } else {
        freeze(op);
      }
    }
  }
  return layers;
}

std::int64_t adapter_parameter_count(const ModelSpec& model, const Adapters& adapters) {
  const Shard whole{.sequence_length = 1};
  const ModelLayers layers = with_adapters(build_layers(model, whole), adapters, whole.types);
  std::int64_t sum = 0;
  for (const std::uint32_t kind : layers.kind_of_block) sum += layers.blocks[kind].parameters();
  return sum;
}

}  // namespace stepsim
