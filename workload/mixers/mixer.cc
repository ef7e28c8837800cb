#include "workload/mixers/mixer.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "workload/mixers/attention.h"
#include "workload/mixers/chunked_scan.h"
#include "workload/mixers/cross_attention.h"
#include "workload/mixers/shared_block.h"
#include "workload/mixers/sparse_attention.h"
#include "workload/mixers/state_mixer.h"
#include "workload/parts/hyper_connection.h"

namespace stepsim {
namespace {

void append(std::vector<LayerOp> more, std::vector<LayerOp>& ops) {
  std::move(more.begin(), more.end(), std::back_inserter(ops));
}

// The state reads what attention has gathered, and its partial sums join attention's.
void add_beside(const Part& part, std::vector<LayerOp> states, std::vector<LayerOp>& ops) {
  share_input(part, "attention_norm", states.front());
  states.front().tensor.regathers_input = false;
  share_result(part, states.back());
  append(std::move(states), ops);
}

bool has_indexer(const BlockKind& kind) {
  return kind.mixer == Mixer::kCompressed || (kind.mixer == Mixer::kSparse && !kind.shares);
}

// The MLP's own norm, beside attention's. It reads the same, which that one keeps.
LayerOp second_norm(const Part& part) {
  LayerOp op = norm(part, "mlp_norm");
  op.saved.total = op.saved.input = Bytes(0);
  return op;
}

}  // namespace

std::vector<LayerOp> mixer_branch(const Part& part, const BlockKind& kind) {
  const ModelSpec& model = part.model;
  std::vector<LayerOp> ops;
  if (kind.mixer == Mixer::kNone) return ops;
  if (kind.mixer == Mixer::kShared) append(shared_block(part, kind), ops);
  const bool begins_with_attention = kind.attends() && kind.mixer != Mixer::kShared;
  const OpName own_norm = begins_with_attention ? OpName("attention_norm") : OpName("mixer_norm");
  open_branch(part, "attention_mapping", model.parallel_branches ? OpName("norm") : own_norm, ops);
  if (model.norms.parallel) ops.push_back(second_norm(part));
  if (begins_with_attention) append(attention_ops(part, kind), ops);
  if (kind.mixer == Mixer::kBoth) {
    add_beside(part, state_ops(part), ops);
  } else if (kind.has_state()) {
    append(state_ops(part), ops);
  }
  if (model.parallel_branches) return ops;
  if (begins_with_attention) {
    add_post_norm(part, "attention_post_norm", ops);
    const bool state_bias = kind.has_state() && model.state.bias;
    close_branch(part, "attention_residual", model.attention.bias || state_bias, ops);
    if (model.attention.bias && state_bias)
      ops.back().parameters.own += part.own_width();  // one each
  } else {
    add_post_norm(part, "mixer_post_norm", ops);
    close_branch(part, "mixer_residual", model.state.bias, ops);
  }
  if (kind.mixer == Mixer::kCross) append(cross_attention_branch(part), ops);
  return ops;
}

double mixing_flops(const ModelSpec& model, const BlockKind& kind, const MixedSequence& sequence) {
  const std::int64_t length = sequence.length;
  double flops = 0;
  if (kind.attends()) {
    const ModelSpec own = as_in(model, kind);
    const bool absorbed = kind.mixer == Mixer::kSparse && own.latent.kv_rank > 0;
    const std::int64_t width = own.compressed.output_groups > 0 ? 2 * own.attention.head_dim
                               : absorbed ? 2 * own.latent.kv_rank + own.latent.rope_dim
                                          : own.qk_dim() + own.v_dim();
    double pairs = sequence.masked ? pairs_of(model, kind, length, true)
                                   : pairs_in_documents(model, kind, length, sequence.document);
    if (kind.mixer == Mixer::kCross) pairs += attention_pairs(length, false, 0);
    flops += 2 * pairs * static_cast<double>(own.attention.heads * width);
  }
  if (has_indexer(kind)) flops += index_flops(model, length, 0);
  if (kind.has_state()) flops += recurrence_flops(model.state, length);
  return flops;
}

double mixing_training_flops(const ModelSpec& model, const BlockKind& kind,
                             const MixedSequence& sequence) {
  const std::int64_t length = sequence.length;
  const double forward = mixing_flops(model, kind, sequence);
  if (!has_indexer(kind)) return 3 * forward;
  const double backward = index_flops(model, length, model.indexer.top_k);
  return 3 * forward - 2 * (index_flops(model, length, 0) - backward);
}

}  // namespace stepsim
