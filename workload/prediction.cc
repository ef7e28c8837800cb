#include "workload/prediction.h"

#include <utility>
#include <vector>

#include "workload/embedding.h"

namespace stepsim {

namespace {

// Every stream is multiplied by the same matrix, and what the embedding's matrix makes is added to
// each (DeepSeek-V4).
Layer entry_of_streams(const Part& part, LayerOp table) {
  const std::int64_t n = part.model.residual_streams();
  LayerOp found = project_own(part, {.name = "prediction_projection",
                                     .inputs = part.hidden(),
                                     .outputs = part.hidden(),
                                     .narrow = true});
  keep_input(found, part.operand_size(part.own_tokens * part.hidden()));
  found.reads = {"prediction_embedding_norm"};
  Part wide = part;
  wide.tokens *= n;
  wide.own_tokens *= n;
  LayerOp streams = project_own(wide, {.name = "prediction_stream_projection",
                                       .inputs = part.hidden(),
                                       .outputs = part.hidden(),
                                       .narrow = true});
  for (std::vector<Kernel>* kernels : {&streams.forward, &streams.input_gradient}) {
    for (Kernel& kernel : *kernels) {
      if (kernel.kind != KernelKind::kMatmul) continue;
      kernel.batch = n;  // the matrix counts once for each stream
      kernel.m /= n;
    }
  }
  const Kernel add = part.elementwise(
      "join", {.elements = wide.own_tokens * part.hidden(), .reads = 2, .flops = 1});
  streams.forward.push_back(add);
  streams.input_gradient.push_back(add);
  keep_input(streams, part.operand_size(wide.own_tokens * part.hidden()));
  streams.reads = {"prediction_norm", "prediction_projection"};
  return {.name = "prediction entry",
          .ops = {std::move(table), norm(part, "prediction_embedding_norm"), std::move(found),
                  norm(wide, "prediction_norm"), std::move(streams)}};
}

}  // namespace

Layer prediction_entry_layer(const Part& part) {
  LayerOp table = look_up(part, "prediction_embedding");
  table.parameters.own = 0;
  if (part.model.hyper.streams > 0) return entry_of_streams(part, std::move(table));
  const std::int64_t joined = part.own_tokens * 2 * part.hidden();
  LayerOp projection = project_own(part, {.name = "prediction_projection",
                                          .inputs = 2 * part.hidden(),
                                          .outputs = part.hidden(),
                                          .narrow = true});
  const Kernel join = part.elementwise("join", {.elements = joined});
  projection.forward.insert(projection.forward.begin(), join);
  projection.input_gradient.push_back(join);
  keep_input(projection, part.operand_size(joined));
  return {.name = "prediction entry",
          .ops = {std::move(table), norm(part, "prediction_embedding_norm"),
                  branch_norm(part, "prediction_norm"), std::move(projection)}};
}

}  // namespace stepsim
