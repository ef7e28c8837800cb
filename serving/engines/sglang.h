// SGLang's scheduler (sglang/srt/managers/scheduler.py, schedule_policy.py): prefills go first and
// alone, in chunks of `chunk` tokens, up to `max_prefill`; with mixed_chunk the decodes go with
// them. A waiting request is admitted if its prompt and a share of its answer fit beside the same
// share of the answers of those that run. The share begins at 0.7 x conservativeness, falls over
// 600 decode steps to 0.14 of that, and rises when requests must be retracted: the shortest answers
// go back to the end of the queue.

#pragma once

#include <cstdint>
#include <vector>

#include "serving/engines/engine.h"

namespace stepsim {

class SglangEngine final : public Engine {
 public:
  explicit SglangEngine(const EngineOptions& options);
  void form(EngineState& state) override;

 private:
  void form_prefill(EngineState& state);
  bool admit_next(EngineState& state, std::int64_t& input_left);
  std::int64_t promised(const Sequence& sequence) const;
  void form_decode(EngineState& state);
  void retract(EngineState& state);

  double first_share_;
  double share_;  // of an answer for which room is kept
};

}  // namespace stepsim
