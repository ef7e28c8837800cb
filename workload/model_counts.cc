#include "workload/model_counts.h"

#include <functional>
#include <utility>
#include <vector>

#include "workload/layers.h"
#include "workload/mixers/mixer.h"
#include "workload/model/mlp_stack_spec.h"
#include "workload/parts/layer_op.h"
#include "workload/vision.h"

namespace stepsim {
namespace {

// Returns the layers as one chip would hold them all. Counts come from them, so that there is no
// second list of what a layer consists of.
ModelLayers whole_layers(const ModelSpec& model) {
  return build_layers(model, {.sequence_length = 1});
}

using CountOfLayer = std::function<std::int64_t(const Layer&)>;

std::int64_t over_blocks(const ModelLayers& layers, const CountOfLayer& count) {
  std::vector<std::int64_t> of_kind;
  for (const Layer& block : layers.blocks) of_kind.push_back(count(block));
  std::int64_t sum = 0;
  for (const std::uint32_t kind : layers.kind_of_block) sum += of_kind[kind];
  return sum;
}

std::int64_t over_predictions(const ModelLayers& layers, const CountOfLayer& count) {
  std::int64_t sum = 0;
  for (const PredictionModule& module : layers.prediction) {
    sum += count(module.entry) + count(layers.blocks[module.kind_of_block]) + count(module.head);
  }
  return sum;
}

std::int64_t over_model(const ModelLayers& layers, const CountOfLayer& count) {
  return count(layers.embedding) + over_blocks(layers, count) + count(layers.head);
}

std::int64_t all_parameters(const Layer& layer) {
  return layer.parameters();
}

// Returns the part of the routed experts' values that a token uses.
std::int64_t visited(const ModelSpec& model, std::int64_t of_all_experts) {
  return of_all_experts / model.experts.routed * model.experts.visited();
}

CountOfLayer active_parameters(const ModelSpec& model) {
  return [&model](const Layer& layer) {
    const std::int64_t routed = layer.parameters(Region::kExpert);
    return routed == 0 ? layer.parameters() : layer.parameters() - routed + visited(model, routed);
  };
}

CountOfLayer matmul_parameters(const ModelSpec& model) {
  return [&model](const Layer& layer) {
    std::int64_t sum = 0;
    for (const LayerOp& op : layer.ops) {
      const Kernel* const kernel = weights_matmul(op);
      if (kernel == nullptr) continue;
      const std::int64_t weights = kernel->batch * kernel->n * kernel->k;
      sum += op.region == Region::kExpert ? visited(model, weights) : weights;
    }
    return sum;
  };
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  return over_model(whole_layers(model), all_parameters);
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  return over_model(whole_layers(model), active_parameters(model));
}

std::int64_t expert_parameter_count(const ModelSpec& model) {
  if (model.experts.routed == 0) return 0;
  return over_model(whole_layers(model),
                    [](const Layer& layer) { return layer.parameters(Region::kExpert); });
}

std::int64_t prediction_parameter_count(const ModelSpec& model) {
  if (model.prediction.modules == 0) return 0;
  return over_predictions(whole_layers(model), all_parameters);
}

std::int64_t matrix_parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  const CountOfLayer count = [](const Layer& layer) {
    std::int64_t sum = 0;
    for (const WeightMatrix& matrix : matrices_of(layer)) sum += matrix.values();
    return sum;
  };
  const ModelLayers layers = whole_layers(model);
  return over_model(layers, count) + over_predictions(layers, count);
}

std::int64_t vision_parameter_count(const ModelSpec& model) {
  if (model.vision.layers == 0) return 0;
  const VisionLayers vision = vision_layers(model, {.sequence_length = 1});
  return vision.entry.parameters() + vision.blocks * vision.block.parameters() +
         vision.projector.parameters();
}

VisionFlops vision_flops(const ModelSpec& model, std::int64_t patches) {
  if (model.vision.layers == 0) return {};
  const VisionLayers vision = vision_layers(model, {.sequence_length = 1});
  const CountOfLayer weights = matmul_parameters(model);
  const double rows = 2 * static_cast<double>(patches);
  const ModelSpec encoder = vision_encoder(model.vision);
  const double mixing = mixing_flops(encoder, kind_of(encoder, 0), {.length = patches});
  return {.encoder = rows * static_cast<double>(weights(vision.entry)) +
                     static_cast<double>(vision.blocks) *
                         (rows * static_cast<double>(weights(vision.block)) + mixing),
          .projectors = rows / static_cast<double>(model.vision.merged()) *
                        static_cast<double>(weights(vision.projector))};
}

std::int64_t matmul_parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  const ModelLayers layers = whole_layers(model);
  const CountOfLayer count = matmul_parameters(model);
  return over_model(layers, count) + over_predictions(layers, count);
}

ForwardFlops forward_flops(const ModelSpec& model, std::int64_t sequence_length,
                           std::int64_t document_length) {
  if (model.kind == ModelKind::kMlpStack) {
    return {.layers = std::vector<double>(static_cast<std::size_t>(model.layers), 1.0)};
  }
  const ModelLayers layers = whole_layers(model);
  const CountOfLayer weights = matmul_parameters(model);
  const double tokens = 2 * static_cast<double>(sequence_length);
  std::vector<double> of_kind;
  for (const BlockKind& kind : kinds_of(model)) {
    const Layer& block = layers.blocks[of_kind.size()];
    of_kind.push_back(
        tokens * static_cast<double>(weights(block)) +
        mixing_flops(model, kind, {.length = sequence_length, .document = document_length}));
  }
  ForwardFlops flops;
  for (const std::uint32_t kind : layers.kind_of_block) flops.layers.push_back(of_kind[kind]);
  flops.head = tokens * static_cast<double>(weights(layers.head));
  for (const PredictionModule& module : layers.prediction) {
    flops.head += tokens * static_cast<double>(weights(module.entry) + weights(module.head)) +
                  of_kind[module.kind_of_block];
  }
  return flops;
}

double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention, std::int64_t document_length) {
  double mixing = 0;
  if (model.kind == ModelKind::kTransformer) {
    const MixedSequence sequence{.length = sequence_length,
                                 .document = document_length,
                                 .masked = convention == AttentionFlops::kFull};
    const auto of_kind = [&](const BlockKind& kind) {
      return mixing_training_flops(model, kind, sequence);
    };
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      mixing += of_kind(kind_of(model, layer));
    }
    mixing += static_cast<double>(model.prediction.modules) * of_kind(prediction_kind_of(model));
  }
  const double tokens = static_cast<double>(sequences) * static_cast<double>(sequence_length);
  return 6 * tokens * static_cast<double>(matmul_parameter_count(model)) +
         mixing * static_cast<double>(sequences);
}

}  // namespace stepsim
