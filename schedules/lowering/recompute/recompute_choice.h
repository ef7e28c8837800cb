// RecomputeChoice is which ops of a block run again under a plan's recompute, and what follows from
// that: the bytes that are kept and restored, and what is sent again. Policies are sets of ops;
// everything else is read off LayerOp (recompute.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/lowering/recompute/recompute.h"
#include "schedules/plan/plan_themes.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

enum class RecomputePolicy : std::uint8_t {
  kKeep,
  kInside,  // what only its own backward reads is made again, its result stays
  kResult,  // its result too, where somebody reads it
  kModule,  // with its neighbours: all of them run again, whoever reads what
};
RecomputePolicy policy_of(const RecomputePlan& plan, const Ranks& mesh, const LayerOp& op);

// The columns of a projection's result that are dropped.
struct DroppedColumns {
  std::int64_t columns = 0;
  std::int64_t of = 1;

  bool any() const { return columns > 0; }
  bool all() const { return columns == of; }
  Bytes part(Bytes bytes) const { return Bytes(bytes.value() / of * columns); }
};

// Every second matmul of the block, matrices side by side counted one by one: torchtitan's
// checkpointing of operations.
std::vector<DroppedColumns> dropped_alternately(const Layer& block);

bool is_projection(const LayerOp& op);  // a matmul with weights

class RecomputeChoice {
 public:
  // Refers to the block and the plan.
  RecomputeChoice(const Layer& block, const RecomputePlan& plan, const Ranks& mesh,
                  ContextMode context);

  const std::vector<OpRecompute>& ops() const { return result_; }
  // The ops whose results an op reads; none: the block's input.
  const std::vector<std::size_t>& sources(std::size_t i) const { return sources_[i]; }
  bool is_module(std::size_t i) const { return policies_[i] == RecomputePolicy::kModule; }
  // Its whole result, or some columns of it.
  bool makes_again(std::size_t i) const { return result_[i].result_again || dropped_[i].any(); }
  const DroppedColumns& dropped(std::size_t i) const { return dropped_[i]; }

 private:
  bool reads(std::size_t reader, std::size_t op) const;
  // The result of the first op that it reads was dropped.
  bool input_again(std::size_t i) const;
  // Whether an op reads what `op` makes, for its backward or to run again; any, or one of another
  // region.
  bool is_read_again(std::size_t op, bool by_another_region) const;
  // No op of the block keeps the result of this one.
  bool is_read_by_nobody(std::size_t i) const;
  // Whether the result that an op hands on when it runs again is still there, because its input is
  // kept.
  Bytes still_kept(std::size_t i) const;
  // The part of the input of an op that runs again which another op keeps anyway: an op with the
  // same input, or the op that made it. If none of several ops keeps it, the first one does.
  Bytes kept_by_others(std::size_t i) const;

  void choose(std::size_t i);
  void count_bytes(std::size_t i);
  void communicate(std::size_t i);

  const std::vector<LayerOp>& ops_;
  const RecomputePlan& plan_;
  ContextMode context_;
  std::vector<std::vector<std::size_t>> sources_;
  std::vector<RecomputePolicy> policies_;
  std::vector<DroppedColumns> dropped_;
  std::vector<OpRecompute> result_;
};

}  // namespace stepsim
