#include "workload/prediction.h"

#include <utility>

#include "workload/embedding.h"

namespace stepsim {

Layer prediction_entry_layer(const Part& part) {
  LayerOp table = look_up(part, "prediction_embedding");
  table.parameters.own = 0;
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
