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

// Returns the blocks of a replica's cache. Without kv_blocks there is room for as many of the
// longest requests of this model as may run or wait for a slot.
std::int64_t kv_blocks_of(const EngineRow& engine, const EngineOptions& options,
                          const RequestList& requests, std::size_t model);

// Returns the options without a prefix cache where it can make no difference: no requests of this
// model share a beginning, and blocks can't run out.
EngineOptions with_useful_cache(EngineOptions options, const RequestList& requests,
                                std::size_t model);

// Returns whether a replica can compute again what it has preempted, of any request of this model.
// Without chunks a prompt with the answer so far must fit the budget.
bool resumes_all(const EngineOptions& options, const RequestList& requests, std::size_t model);

class Replica {
 public:
  Replica(const EngineRow& engine, const EngineOptions& options, std::int64_t kv_blocks,
          StepCost& cost, IdTable<RequestId, Sequence>& sequences);

  EngineState& state() { return state_; }
  const EngineState& state() const { return state_; }
  Engine& engine() { return *engine_; }
  bool is_busy() const { return end_.has_value(); }

  // Begins the next step if none runs and there is one. Returns its end. preempted() and
  // step().admitted say who went and who came.
  std::optional<Time> begin_step(Time now);
  // Forms the next step beside the one that runs, if scheduling is asynchronous. preempted() says
  // who went.
  void prepare();
  const Batch& step() const { return step_; }  // that runs, or has just ended
  Time step_start() const { return start_; }
  std::vector<RequestId>& preempted() { return preempted_; }

  void end_step() { end_.reset(); }

  // Requests that a prefill replica has handed over and whose blocks are still to be taken.
  std::deque<RequestId>& incoming() { return incoming_; }
  // Takes the blocks. Returns false if they are not free.
  bool receive(RequestId request);
  // From now on it receives a request only with the blocks of its whole answer, so that none is
  // preempted.
  void reserve_answers() { reserves_answer_ = true; }

  // Prompt tokens of requests that were routed here and have not ended.
  std::int64_t prompt_tokens = 0;
  std::int64_t written_blocks = 0;  // to the host's memory, whose copies have begun
  ReplicaTotals totals{};

 private:
  // Throws ServingStuck if a request that is alone gives way to nobody, again and again.
  bool form();
  void count_vain_start(RequestId request);
  Duration pass_time() const;

  EngineState state_;
  std::unique_ptr<Engine> engine_;
  StepCost& cost_;
  bool reserves_answer_;
  std::optional<WaitingCaches> waiting_caches_;  // nullopt: there are no slots
  Batch step_;
  Time start_{};
  Time launch_{};  // when the host has given it to the chips
  std::optional<Time> end_{};
  std::optional<Time>
      prepared_{};  // state_.batch() is the next step; the host works on it from then on
  std::vector<RequestId> preempted_;

  // Starts of one request that all ended, before another token, in its own preemption.
  struct VainStarts {
    RequestId request;
    std::int32_t emitted = 0;
    std::int32_t count = 0;
  };
  VainStarts vain_{};
  std::deque<RequestId> incoming_;
};

}  // namespace stepsim
