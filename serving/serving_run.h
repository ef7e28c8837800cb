// ServingRun is one run of simulate_serving(): the clock, the replicas, and the books on every
// request.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "serving/replica.h"
#include "serving/replica_router.h"
#include "serving/serve.h"
#include "sim/engine/event_queue.h"

namespace stepsim {

class ServingRun {
 public:
  ServingRun(const RequestList& requests, const ServingOptions& options, const ServingCosts& costs,
             const std::function<void(double)>& progress);

  ServingResult run();

 private:
  // The replicas of a model.
  struct Served {
    explicit Served(ModelReplicas asked)
        : given(std::move(asked)), router(given.router), decode_router(given.router) {}

    ModelReplicas given;
    std::vector<Replica*> first{};   // those that requests are routed to
    std::vector<Replica*> second{};  // that decode, if disaggregated
    std::uint32_t first_number = 0;  // of the replicas in `first`
    std::uint32_t second_number = 0;
    ReplicaRouter router;
    ReplicaRouter decode_router;
  };
  // A transfer holds blocks on both sides; these are the ones that it leaves.
  struct Lent {
    std::uint32_t replica = 0;
    KvHolding holding{};
  };
  struct LoopState {
    std::vector<RequestId> requests;  // in order
    std::size_t next = 0;
  };

  void make_models(const ServingCosts& costs);
  void make_replicas(std::size_t model, const ReplicaGroup& group, StepCost& cost,
                     std::vector<Replica*>& members);
  Served& model_of(RequestId request) {
    return models_[requests_.model_of(requests_.requests[request.index()])];
  }
  std::int32_t answer_tokens(RequestId request);
  void make_sequences();
  void line_up_arrivals();

  std::optional<Time> next_instant() const;
  void run_instant(Time now);
  void end_steps(Time now);
  void end_step(std::uint32_t replica, Time now);
  void book_entry(std::uint32_t replica, const BatchEntry& entry, Time now);
  void book_tokens(RequestId request, std::int32_t tokens, Time now);
  std::int64_t accepted_drafts(const EngineOptions& engine, const BatchEntry& entry) const;
  void request_ends(std::uint32_t replica, RequestId request, Time now);
  void call_next(TenantId tenant, Time now);

  void hand_over(std::uint32_t replica, RequestId request, Time now);
  void receive_incoming(std::uint32_t replica, Time now);
  void end_transfers(Time now);

  void begin_fetches(std::uint32_t replica, Time now);
  void end_fetches(Time now);

  void take_arrivals(Time now);
  void arrive(RequestId request, Time now);
  void line_up(RequestId request);
  void begin_steps(Time now);
  void begin_step(std::uint32_t replica, Time now);
  void book_preempted(Replica& replica, Time now);
  void record_step(std::uint32_t replica, Time end);

  void change_part(RequestId request, RequestPart part, Time now);
  void touch(std::uint32_t replica);
  void observe(std::uint32_t replica, Time now);
  void check_end() const;
  ServingResult take_result();

  const RequestList& requests_;
  const ServingOptions& options_;
  const ServingCosts& costs_;
  const std::function<void(double)>& progress_;

  IdTable<RequestId, Sequence> sequences_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Served> models_;

  EventQueue queue_;
  std::vector<RequestId> open_;  // with an arrival, in order of time
  std::size_t next_open_ = 0;
  std::deque<RequestId> called_;  // of closed loops, at this instant
  std::vector<RequestId> ready_;  // that a scheduler sees from this instant on
  IdTable<TenantId, LoopState> loops_;
  std::vector<std::uint32_t> ending_;   // replicas whose step ends at this instant
  std::vector<std::uint32_t> touched_;  // replicas that may begin a step
  std::vector<bool> is_touched_;
  std::vector<KvTransfer> arrived_;
  std::vector<std::optional<Lent>> lent_;  // by request, if disaggregated
  std::vector<RequestId> ended_;           // with the step that is being booked

  // The part of its time that a request is in, and since when.
  struct Stage {
    Time since{};
    RequestPart part = RequestPart::kQueue;
  };
  IdTable<RequestId, Stage> stages_;
  std::vector<Load> loads_;  // by replica
  Load load_{};
  std::size_t done_ = 0;
  ServingResult result_;
};

}  // namespace stepsim
