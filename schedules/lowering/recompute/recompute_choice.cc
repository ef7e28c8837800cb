#include "schedules/lowering/recompute/recompute_choice.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace stepsim {
namespace {

// Sources lists, for each op, the earlier ops whose results it reads, in the order of
// LayerOp::reads. The first op of a block reads the block's input, which is not an op.
using Sources = std::vector<std::vector<std::size_t>>;
Sources sources_of(const Layer& block) {
  Sources sources(block.ops.size());
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    for (const OpName name : block.ops[i].reads) {
      const auto found = std::ranges::find(block.ops, name, &LayerOp::name);
      if (found == block.ops.end())
        throw std::logic_error("no op of the block makes what one reads");
      sources[i].push_back(static_cast<std::size_t>(found - block.ops.begin()));
    }
    if (sources[i].empty() && i > 0) sources[i] = {i - 1};
  }
  return sources;
}

// Returns the bytes of a projection's result.
Bytes projection_size(const LayerOp& op) {
  Bytes most;
  for (const Kernel& kernel : op.forward) {
    if (kernel.kind == KernelKind::kMatmul) most = std::max(most, kernel.written);
  }
  return most;
}

}  // namespace

RecomputeChoice::RecomputeChoice(const Layer& block, const RecomputePlan& plan, const Ranks& mesh,
                                 ContextMode context)
    : ops_(block.ops),
      plan_(plan),
      context_(context),
      sources_(sources_of(block)),
      result_(block.ops.size()) {
  for (const LayerOp& op : ops_) policies_.push_back(policy_of(plan, mesh, op));
  dropped_.resize(ops_.size());
  if (keeps_every_second_matmul(plan.kind)) dropped_ = dropped_alternately(block);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (dropped_[i].all()) policies_[i] = RecomputePolicy::kResult;
  }
  for (std::size_t i = ops_.size(); i-- > 0;) choose(i);
  for (std::size_t i = 0; i < ops_.size(); ++i) count_bytes(i);
  for (std::size_t i = 0; i < ops_.size(); ++i) communicate(i);
}

bool RecomputeChoice::reads(std::size_t reader, std::size_t op) const {
  return std::ranges::count(sources_[reader], op) > 0;
}

bool RecomputeChoice::input_again(std::size_t i) const {
  return !sources_[i].empty() && result_[sources_[i].front()].result_again;
}

bool RecomputeChoice::is_read_again(std::size_t op, bool by_another_region) const {
  for (std::size_t reader = op + 1; reader < ops_.size(); ++reader) {
    if (!reads(reader, op)) continue;
    if (by_another_region && ops_[reader].region == ops_[op].region) continue;
    if (ops_[reader].backward_reads_input || result_[reader].again) return true;
  }
  return false;
}

void RecomputeChoice::choose(std::size_t i) {
  const bool is_needed = ops_[i].saved.result > Bytes(0) || is_read_again(i, false);
  result_[i].again = policies_[i] == RecomputePolicy::kInside ||
                     policies_[i] == RecomputePolicy::kModule ||
                     (policies_[i] == RecomputePolicy::kResult && is_needed);
  result_[i].result_again = result_[i].again && policies_[i] != RecomputePolicy::kInside;
}

void RecomputeChoice::count_bytes(std::size_t i) {
  const LayerOp& op = ops_[i];
  OpRecompute& chosen = result_[i];
  chosen.kept = op.saved.total;
  if (chosen.again) {
    chosen.restored = op.saved.inside;
    if (chosen.result_again) chosen.restored += op.saved.result;
    chosen.kept -= chosen.restored;
  }
  if (input_again(i)) {
    chosen.kept -= op.saved.input;
    chosen.input_restored = op.saved.input;
    chosen.input_restored -= std::min(op.saved.input, still_kept(sources_[i].front()));
  } else {
    Bytes input = op.saved.input;
    if (chosen.result_again) {
      const Bytes added = op.input - std::min(op.input, kept_by_others(i));
      chosen.kept += added;
      input += added;
    }
    if (!sources_[i].empty() && dropped_[sources_[i].front()].any()) {
      const Bytes part = dropped_[sources_[i].front()].part(input);
      chosen.kept -= part;
      chosen.input_restored = part;
    }
  }
  // Results that are not dropped are kept, even if nobody reads them.
  if (keeps_every_second_matmul(plan_.kind) && is_projection(op) && !dropped_[i].any() &&
      is_read_by_nobody(i)) {
    chosen.kept += projection_size(op);
  }
}

bool RecomputeChoice::is_read_by_nobody(std::size_t i) const {
  for (std::size_t reader = i + 1; reader < ops_.size(); ++reader) {
    if (sources_[reader].empty() || sources_[reader].front() != i) continue;
    if (ops_[reader].saved.input > Bytes(0) || result_[reader].result_again) return false;
  }
  return true;
}

Bytes RecomputeChoice::still_kept(std::size_t i) const {
  if (!input_again(i)) return ops_[i].passed_on;
  return std::min(ops_[i].passed_on, still_kept(sources_[i].front()));
}

Bytes RecomputeChoice::kept_by_others(std::size_t i) const {
  if (sources_[i].empty()) return ops_[i].saved.input;
  const std::size_t source = sources_[i].front();
  Bytes most = ops_[source].saved.result;
  for (std::size_t reader = source + 1; reader < ops_.size(); ++reader) {
    if (sources_[reader].empty() || sources_[reader].front() != source) continue;
    most = std::max(most, ops_[reader].saved.input);
    if (reader < i && result_[reader].result_again) most = std::max(most, ops_[reader].input);
  }
  return most;
}

void RecomputeChoice::communicate(std::size_t i) {
  const LayerOp& op = ops_[i];
  OpRecompute& chosen = result_[i];
  const bool is_last = i + 1 == ops_.size();
  if (is_tensor(op) && i > 0 && !is_tensor(ops_[i - 1])) {
    for (std::size_t other = i; other < ops_.size() && is_tensor(ops_[other]); ++other) {
      const bool reads_gathered =
          std::ranges::any_of(sources_[other], [&](std::size_t source) { return source < i; });
      chosen.gathers_again = chosen.gathers_again || (makes_again(other) && reads_gathered);
    }
  }
  if (is_tensor(op) && (is_last || !is_tensor(ops_[i + 1]))) {
    chosen.reduces_again = chosen.result_again && (is_module(i) || is_read_again(i, true));
  }
  // Ulysses and experts keep what they received, not the data before the exchange.
  const bool keeps_received = op.region == Region::kExpert || context_ == ContextMode::kUlysses;
  const bool rings = context_ == ContextMode::kRing || context_ == ContextMode::kZigzagRing;
  chosen.receives_again = keeps_received
                              ? input_again(i) && (op.backward_reads_input || chosen.again)
                          : rings ? chosen.again
                                  : chosen.result_again;
  chosen.returns_again =
      chosen.result_again && (is_module(i) || op.saved.result > Bytes(0) || is_read_again(i, true));
}

std::vector<OpRecompute> recomputed_ops(const Layer& block, const RecomputePlan& plan,
                                        const Ranks& mesh, ContextMode context) {
  return RecomputeChoice(block, plan, mesh, context).ops();
}

Bytes kept(const std::vector<OpRecompute>& ops) {
  Bytes sum;
  for (const OpRecompute& op : ops) sum += op.kept;
  return sum;
}

}  // namespace stepsim
