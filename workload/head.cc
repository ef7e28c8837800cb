#include "workload/head.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/embedding.h"
#include "workload/parts/hyper_connection.h"

namespace stepsim {
namespace {

// Pass is a pass over the logits by a loss of several kernels: the bytes read and written per
// logit, in order.
struct Pass {
  std::int64_t read;
  std::int64_t written;
};

Kernel pass_over(std::string_view name, std::int64_t logits, const Pass& pass) {
  Kernel kernel =
      elementwise(name, DataType::kFp32, {.elements = logits, .reads = 0, .writes = 0, .flops = 1});
  kernel.read = Bytes(logits * pass.read);
  kernel.written = Bytes(logits * pass.written);
  return kernel;
}

struct LossMemory {
  std::int64_t kept = 0;  // bytes per logit
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;
};

void make_in_passes(const Part& part, const std::vector<Pass>& forward,
                    const std::vector<Pass>& backward, const LossMemory& memory, LayerOp& op) {
  const std::int64_t logits = part.tokens * part.vocabulary;
  for (const Pass& pass : forward) op.forward.push_back(pass_over(op.name, logits, pass));
  for (const Pass& pass : backward) op.input_gradient.push_back(pass_over(op.name, logits, pass));
  op.saved.total = Bytes(logits * memory.kept);
  op.workspace.forward = Bytes(logits * memory.forward_workspace);
  op.workspace.backward = Bytes(logits * memory.backward_workspace);
}

// PyTorch's forward: an fp32 copy of logits of `t` bytes, and log-softmax, one kernel that reads
// three times: for the largest value, the sum and the result.
std::vector<Pass> copy_and_log_softmax(std::int64_t t) {
  return {{t, 4}, {4, 0}, {4, 0}, {4, 4}};
}

LayerOp cross_entropy(const Part& part) {
  const std::int64_t logits = part.tokens * part.vocabulary;
  const std::int64_t reduced = 3;
  const std::int64_t t = part.size(1).value();
  const Bytes statistic = part.tokens * size_of(DataType::kFp32);
  const Bytes targets = Bytes(part.tokens * kTokenIdBytes);
  LayerOp op{.name = "cross_entropy", .region = Region::kTensor};
  switch (part.shard.loss.kernels) {
    case LossKernels::kFused:
      op.forward = {part.elementwise(op.name, {.elements = logits, .writes = 0, .flops = 5})};
      op.input_gradient = {part.elementwise(op.name, {.elements = logits, .flops = 4})};
      op.saved.total = part.size(logits) + statistic;  // and the largest logit
      break;
    case LossKernels::kChunked:
      op.forward = {part.elementwise(op.name, {.elements = logits, .flops = 9})};
      op.saved.total = part.own_stream();
      break;
    case LossKernels::kInPlace:
      // The passes: copy, largest, difference, exponential, sum, quotient; then product, rounding.
      make_in_passes(part, {{t, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 0}, {4, 4}}, {{4, 4}, {4, t}},
                     {.kept = 4, .forward_workspace = t, .backward_workspace = t}, op);
      break;
    case LossKernels::kSeparate:
      // The backward of log-softmax reads twice, for a sum and for the result (SoftMax.cu). The
      // in-place form has a kernel for each of these steps, which also writes and so moves more.
      // The passes: copy, log-softmax; zeros, gradient of the log-softmax, rounding.
      if (part.shard.tensor == 1) {
        make_in_passes(part, copy_and_log_softmax(t), {{0, 4}, {4, 0}, {8, 4}, {4, t}},
                       {.kept = 4, .forward_workspace = t + 4, .backward_workspace = t + 8}, op);
        break;
      }
      // Over a tensor group (loss_parallel) each step has its own kernel: copy, largest,
      // difference, exponential, sum, result; zeros, exponential, sum, product, rounding. The block
      // of the logits themselves is free by then, but too small for any later result.
      make_in_passes(part, {{t, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 0}, {4, 4}},
                     {{0, 4}, {4, 4}, {8, 4}, {4, 4}, {4, t}},
                     {.kept = 4, .forward_workspace = t + 8, .backward_workspace = t + 12}, op);
      break;
  }
  if (part.shard.loss.hold_logits) {
    // The block of the rounded logits is then that of their gradient.
    op.workspace.forward = std::max(op.workspace.forward, Bytes(logits * 4));
    op.workspace.backward += Bytes(logits * (4 - t));
  }
  op.forward.front().read += targets;
  op.forward.front().written += reduced * statistic;
  if (!op.input_gradient.empty()) op.input_gradient.front().read += 2 * statistic + targets;
  op.saved.total += statistic + targets;
  op.workspace.forward += reduced * statistic;
  op.tensor.reduced_values_per_token = reduced;
  return op;
}

// Adds cross entropies that nobody differentiates, each with PyTorch's kernels: an fp32 copy of the
// logits and its log-softmax, which are freed at once.
void add_metrics(const Part& part, LayerOp& loss) {
  const std::int64_t logits = part.tokens * part.vocabulary;
  const std::int64_t t = part.size(1).value();
  for (std::int64_t metric = 0; metric < part.shard.loss.metric_losses; ++metric) {
    for (const Pass& pass : copy_and_log_softmax(t)) {
      loss.forward.push_back(pass_over("metric", logits, pass));
    }
    loss.workspace.forward = std::max(loss.workspace.forward, Bytes(logits * (4 + 4)));
  }
}

// BERT's head: a square projection and an activation before the norm.
std::vector<LayerOp> head_projection(const Part& part) {
  LayerOp projection = project_own(part, {.name = "head_projection",
                                          .inputs = part.hidden(),
                                          .outputs = part.hidden(),
                                          .bias = part.model.mlp.bias});
  keep_input(projection, part.own_stream());
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp activation{.name = "head_activation"};
  activation.forward = {part.elementwise(activation.name, {.elements = elements, .flops = 10})};
  activation.input_gradient = {
      part.elementwise(activation.name, {.elements = elements, .reads = 2, .flops = 20})};
  keep_input(activation, part.own_stream());
  activation.workspace.backward = 2 * part.own_stream();
  return {std::move(projection), std::move(activation)};
}

Layer norm_to_loss(const Part& part, std::string name, bool own_table) {
  LayerOp unembedding = project_gathered(
      part,
      {.name = "unembedding", .inputs = part.hidden(), .outputs = part.vocabulary, .flat = true});
  if (!own_table) unembedding.parameters.own = 0;
  if (part.shard.loss.kernels == LossKernels::kFused ||
      part.shard.loss.kernels == LossKernels::kChunked) {
    // The gradient of the logits takes the place of the kept logits, or is never there whole.
    unembedding.workspace.backward -= part.size(part.tokens * part.vocabulary);
  }
  Layer layer{.name = std::move(name), .ops = {}};
  if (part.model.head_projection) layer.ops = head_projection(part);
  if (part.model.hyper.streams > 0) layer.ops.push_back(sum_of_streams(part));
  layer.ops.push_back(norm(part, "final_norm"));
  layer.ops.push_back(std::move(unembedding));
  layer.ops.push_back(cross_entropy(part));
  return layer;
}

}  // namespace

Layer head_layer(const Part& part) {
  Layer head = norm_to_loss(part, "head", !part.model.embedding.tied);  // or the embedding's table
  add_metrics(part, head.ops.back());
  return head;
}

Layer prediction_head_layer(const Part& part) {
  return norm_to_loss(part, "prediction head", false);
}

}  // namespace stepsim
