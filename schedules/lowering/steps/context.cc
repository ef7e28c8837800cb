#include "schedules/lowering/steps/context.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "workload/parts/context_pairs.h"

namespace stepsim {
namespace {

using Kind = LayerStep::Kind;

// Hands on what a rank has, beside compute. Steps that need the ticket wait for it.
LayerStep ring_hop(Lane lane, std::int64_t ticket, Bytes bytes, DataType type) {
  LayerStep step = exchange(lane, CollectiveOp::kPermute, bytes, type);
  step.kind = Kind::kBackground;
  step.ticket = static_cast<std::uint32_t>(ticket);
  return step;
}

class Ring {
 public:
  Ring(const ContextShare& share, const Precision& precision)
      : share_(share), precision_(precision) {}

  std::vector<LayerStep> forward(Bytes kept) const {
    std::vector<LayerStep> steps;
    for (std::int64_t chunk = 0; chunk < share_.mesh.cp; ++chunk) {
      if (chunk + 1 < share_.mesh.cp) steps.push_back(hop(Lane::kContext, kForward + chunk + 1));
      LayerStep step = compute(chunk, kForward);
      const double pairs = pairs_of(chunk);
      if (pairs == 0) continue;
      step.kernels.push_back(in_documents(attention_forward("attention", type(), shape(pairs)),
                                          share_.batch.document_length));
      if (chunk > 0) step.kernels.push_back(merge("merge_attention", outputs()));
      step.kept = std::exchange(kept, Bytes(0));
      step.workspace = 2 * chunk_bytes(precision_.activations());
      steps.push_back(std::move(step));
    }
    return steps;
  }

  std::vector<LayerStep> backward(Bytes let_go) const {
    std::vector<LayerStep> steps;
    std::size_t last = 0;
    for (std::int64_t chunk = 0; chunk < share_.mesh.cp; ++chunk) {
      const bool is_last = chunk + 1 == share_.mesh.cp;
      if (!is_last) steps.push_back(hop(Lane::kContext, kBackward + chunk + 1));
      LayerStep step = compute(chunk, kBackward);
      const double pairs = pairs_of(chunk);
      if (pairs > 0) {
        step.kernels.push_back(in_documents(attention_backward("attention", type(), shape(pairs)),
                                            share_.batch.document_length));
        if (chunk > 0) step.kernels.push_back(merge("merge_gradients", keys_and_values()));
        step.workspace = 4 * chunk_bytes(precision_.activations());
        last = steps.size();
        steps.push_back(std::move(step));
      }
      LayerStep gradients = hop(Lane::kContextGradients, kGradients + chunk);
      if (is_last) gradients.kind = Kind::kCollective;  // the last hop brings them home
      steps.push_back(std::move(gradients));
    }
    steps[last].let_go = let_go;
    return steps;
  }

 private:
  // Tickets for the hops of keys and values, and for the hops of their gradients.
  static constexpr std::int64_t kForward = 0;
  static constexpr std::int64_t kBackward = 1'000'000;
  static constexpr std::int64_t kGradients = 2'000'000;

  DataType type() const { return precision_.activations(); }

  std::vector<TokenSpan> spans(std::int64_t rank) const {
    return spans_of_rank(share_.batch.sequence, share_.mesh.cp, rank,
                         share_.mode != ContextMode::kRing);
  }

  // Counts the pairs of this rank's queries and the keys that have come after `chunk` hops.
  double pairs_of(std::int64_t chunk) const {
    const std::int64_t owner = (share_.rank + share_.mesh.cp - chunk) % share_.mesh.cp;
    const AttentionMask mask{share_.causal, share_.window, share_.window_kind,
                             share_.batch.document_length};
    double pairs = 0;
    for (const TokenSpan& queries : spans(share_.rank)) {
      for (const TokenSpan& keys : spans(owner)) pairs += pairs_between(mask, queries, keys);
    }
    return pairs;
  }

  AttentionShape shape(double pairs) const {
    AttentionShape chunk = share_.shape;
    chunk.keys = chunk.queries;
    chunk.pairs = pairs;
    return chunk;
  }

  std::int64_t outputs() const {
    return share_.shape.sequences * share_.shape.queries * share_.shape.heads * share_.shape.v_dim;
  }
  std::int64_t keys_and_values() const {
    return share_.shape.sequences * share_.shape.queries * share_.shape.kv_heads *
           (share_.shape.qk_dim + share_.shape.v_dim);
  }
  Bytes chunk_bytes(DataType of_type) const { return keys_and_values() * size_of(of_type); }

  Kernel merge(std::string_view name, std::int64_t elements) const {
    return elementwise(name, type(), {.elements = elements, .reads = 2, .flops = 3});
  }

  LayerStep compute(std::int64_t chunk, std::int64_t tickets) const {
    LayerStep step;
    if (chunk > 0) step.needs = {static_cast<std::uint32_t>(tickets + chunk)};
    return step;
  }

  LayerStep hop(Lane lane, std::int64_t ticket) const {
    return ring_hop(lane, ticket, chunk_bytes(precision_.communicated()),
                    precision_.communicated());
  }

  const ContextShare& share_;
  const Precision& precision_;
};

// Bytes of one rank's tokens in the types in which they travel.
struct Sizes {
  Bytes queries, keys_and_values, output;
};
Sizes sizes_of(const AttentionShape& shape, DataType communicated) {
  const Bytes element = size_of(communicated);
  const std::int64_t tokens = shape.sequences * shape.queries;
  return {.queries = tokens * shape.heads * shape.qk_dim * element,
          .keys_and_values = tokens * shape.kv_heads * key_and_value_width(shape) * element,
          .output = tokens * shape.heads * shape.v_dim * element};
}

OpExchange gather(const AttentionShape& shape, const Ranks& mesh, DataType communicated) {
  const Bytes all = mesh.cp * sizes_of(shape, communicated).keys_and_values;
  const auto step = [&](Lane lane, CollectiveOp op) {
    return exchange(lane, op, all, communicated);
  };
  OpExchange result;
  result.before_forward = {step(Lane::kContext, CollectiveOp::kAllGather)};
  result.before_backward = {step(Lane::kContext, CollectiveOp::kAllGather)};
  result.after_backward = {step(Lane::kContextGradients, CollectiveOp::kReduceScatter)};
  return result;
}

OpExchange switch_heads(const AttentionShape& shape, DataType communicated) {
  const Sizes sizes = sizes_of(shape, communicated);
  const auto step = [&](Bytes bytes) {
    return exchange(Lane::kContext, CollectiveOp::kAllToAll, bytes, communicated);
  };
  OpExchange result;
  result.before_forward = {step(sizes.queries + sizes.keys_and_values)};
  result.after_forward = {step(sizes.output)};
  result.before_backward = {step(sizes.output)};
  result.after_backward = {step(sizes.queries + sizes.keys_and_values)};
  return result;
}

// Returns the bytes of all ranks' states. With the zig-zag split each has two.
Bytes all_states(const LayerOp& op, const Ranks& mesh, ContextMode mode) {
  const std::int64_t stretches = mode == ContextMode::kZigzagRing ? 2 : 1;
  return mesh.cp * stretches * op.passed_state;
}

std::vector<OpExchange> pass_states(const Layer& block, const Ranks& mesh, ContextMode mode) {
  std::vector<OpExchange> exchanges;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (block.ops[i].passed_state == Bytes(0)) continue;
    const LayerStep gather = exchange(Lane::kContext, CollectiveOp::kAllGather,
                                      all_states(block.ops[i], mesh, mode), DataType::kFp32);
    exchanges.push_back({.op = i, .before_forward = {gather}, .before_backward = {gather}});
  }
  return exchanges;
}

bool is_ring(ContextMode mode) {
  return mode == ContextMode::kRing || mode == ContextMode::kZigzagRing;
}

}  // namespace

std::vector<OpExchange> context_exchanges(const Layer& block, const ContextShare& share,
                                          const Precision& precision) {
  assert(share.mesh.cp > 1);
  std::vector<OpExchange> exchanges = pass_states(block, share.mesh, share.mode);
  const auto attention = std::ranges::find_if(
      block.ops, [](const LayerOp& op) { return op.name.role() == OpRole::kAttention; });
  if (attention == block.ops.end()) return exchanges;
  OpExchange result;
  if (share.mode == ContextMode::kAllGather) {
    result = gather(share.shape, share.mesh, precision.communicated());
  } else if (share.mode == ContextMode::kUlysses) {
    result = switch_heads(share.shape, precision.communicated());
  } else {
    const Ring ring(share, precision);
    result.forward = ring.forward(attention->saved.total);
    result.backward = ring.backward(attention->saved.total);
  }
  result.op = static_cast<std::size_t>(attention - block.ops.begin());
  exchanges.push_back(std::move(result));
  return exchanges;
}

std::vector<LayerStep> ring_of_pass(const LayerOp& attention, DataType communicated) {
  std::vector<LayerStep> steps;
  for (std::size_t part = 0; part < attention.pass.parts.size(); ++part) {
    const auto ticket = static_cast<std::int64_t>(part);
    if (part + 1 < attention.pass.parts.size()) {
      steps.push_back(
          ring_hop(Lane::kContext, ticket + 1, attention.pass.handed_round, communicated));
    }
    if (attention.pass.parts[part].empty()) continue;
    LayerStep& step = steps.emplace_back();
    if (part > 0) step.needs = {static_cast<std::uint32_t>(part)};
    step.kernels = attention.pass.parts[part];
    step.workspace = attention.workspace.forward;
  }
  return steps;
}

bool context_ranks_differ(const Ranks& mesh, ContextMode mode, std::int64_t document_length,
                          const AttentionSpec& attention) {
  if (mesh.cp == 1 || !is_ring(mode)) return false;
  if (document_length > 0) return true;  // documents don't end where the ranks' tokens do
  return attention.causal && (mode == ContextMode::kRing || attention.window > 0);
}

std::int64_t context_bytes(const AttentionShape& shape, const Ranks& mesh, ContextMode mode,
                           DataType communicated, const ContextAgain& again) {
  const Sizes sizes = sizes_of(shape, communicated);
  const std::int64_t n = mesh.cp;
  const std::int64_t chunk = sizes.keys_and_values.value();
  std::int64_t inputs = (n - 1) * n * chunk;
  std::int64_t outputs = 0;
  std::int64_t backward = is_ring(mode) ? n * (2 * n - 1) * chunk : 2 * (n - 1) * n * chunk;
  if (mode == ContextMode::kUlysses) {
    inputs = (n - 1) * (sizes.queries + sizes.keys_and_values).value();
    outputs = (n - 1) * sizes.output.value();
    backward = inputs + outputs;
  }
  return inputs * (again.inputs ? 2 : 1) + outputs * (again.outputs ? 2 : 1) + backward;
}

std::int64_t state_bytes(const Layer& block, const Ranks& mesh, ContextMode mode, bool again) {
  std::int64_t sum = 0;
  for (const LayerOp& op : block.ops) sum += all_states(op, mesh, mode).value();
  return (mesh.cp - 1) * sum * (again ? 3 : 2);
}

}  // namespace stepsim
