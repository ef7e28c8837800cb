// Replica runs the steps of one copy of the model: it has its engine form a step, keeps it while it
// runs, and books what it made when it ends. serving/serve.cc moves the clock.
//
// With asynchronous scheduling the next step is formed when a step begins, so requests that arrive
// meanwhile come one step later, and the host's time hides behind the step.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "serving/engines/engine.h"
#include "serving/engines/engine_state.h"
#include "serving/engines/engine_table.h"
#include "serving/serving_result.h"
#include "serving/step_cost.h"

namespace stepsim {

class Replica {
 public:
  Replica(EngineName name, const EngineOptions& options, std::int64_t kv_blocks, StepCost& cost,
          IdTable<RequestId, Sequence>& sequences);

  EngineState& state() { return state_; }
  const EngineState& state() const { return state_; }
  Engine& engine() { return *engine_; }
  bool is_busy() const { return end_.has_value(); }

  // Begins the next step if none runs and there is one. Returns its end. preempted() and
  // step().admitted say who went and who came.
  std::optional<Time> begin_step(Time now);
  // Forms the next step beside the one that runs, if scheduling is asynchronous. preempted() says
  // who went.
  void prepare(Time now);
  const Batch& step() const { return step_; }  // that runs, or has just ended
  Time step_start() const { return start_; }
  std::vector<RequestId>& preempted() { return preempted_; }

  void end_step() { end_.reset(); }

  // Requests that a prefill replica has handed over and whose blocks are still to be taken.
  std::deque<RequestId>& incoming() { return incoming_; }

  // Prompt tokens of requests that were routed here and have not ended.
  std::int64_t prompt_tokens = 0;
  ReplicaTotals totals{};

 private:
  bool form();
  Duration pass_time() const;

  EngineState state_;
  std::unique_ptr<Engine> engine_;
  StepCost& cost_;
  Batch step_;
  Time start_{};
  std::optional<Time> end_{};
  std::optional<Time> prepared_{};  // state_.batch() is the next step, known from then on
  std::vector<RequestId> preempted_;
  std::deque<RequestId> incoming_;
};

}  // namespace stepsim
