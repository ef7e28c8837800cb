// Post-validation (Qi et al., Zero Bubble, arXiv 2401.10241, section 4; their runtime): clipping
// needs the norm of all gradients, but an optimizer step that waited for all ranks would close the
// next step to the forwards of those that are done early.
//
//   end of a step     rank r adds its stage's sum to what rank r - 1 hands it, takes its optimizer
//                     step by that partial state, and hands it on to rank r + 1;
//   in the next step  the last rank has the whole sum, and hands it back: P - 1, ..., 0. Rank r
//                     goes ahead with its first min(2 (P - 1 - r), M - 1) forwards, as many as come
//                     before anything else in its order less one, and the one behind them waits.
//
// The whole sum may ask for another step than the one taken, if the norm is above the limit and the
// partial sums did not show it. The authors' runtime then undoes the optimizer step, repeats it,
// and runs the early forwards again. That is not modelled: no step fails.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

inline constexpr Bytes kGlobalState(8);  // norm and overflow flag, fp32

class PostValidation {
 public:
  // REQUIRES: plan.post_validation, more than one rank.
  explicit PostValidation(Stage& stage);

  // Returns the ops that the op of this number in the rank's order waits for.
  std::vector<Dependency> waits_before(std::size_t op) const;

  // `own`: ops after which this stage's sum is known. Returns the ops that the optimizer waits for.
  std::vector<Dependency> add_to_partial_state(const std::vector<Dependency>& own);

 private:
  bool is_first() const { return stage_.number == 0; }
  bool is_last() const { return stage_.number + 1 == stage_.schedule.size(); }
  OpRef exchange(bool is_send, std::int32_t peer, const std::string& name,
                 std::vector<Dependency> dependencies);

  Stage& stage_;
  StreamId stream_;
  std::optional<OpRef> validated_{};    // op that returns the state of the previous step
  std::optional<OpRef> handed_back_{};  // op that hands it to the previous rank
};

}  // namespace stepsim
