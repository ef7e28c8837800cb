// PlanBounds says what a plan costs at least, without simulating it: memory on its fullest rank,
// and the time of a step. Neither is ever above what simulate() finds, so a plan whose bound is
// worse than the result of another need not be simulated.
//
//   memory   the state of the rank (exact), and the activations and workspaces of its kernels in
//   the
//            order of the schedule. Left out: buffers of messages, and what is gathered ahead
//   quick    for each pipeline rank: the passes before its first one, its own passes one after the
//            other, the passes behind its last one, its optimizer. A pass takes its kernels at full
//            speed and the collectives that they wait for, each as if alone (pass_cost.h)
//   behind   the schedule played backwards: what is left of a step behind each pass, so that a
//            simulation ends when it is sure to take longer than another plan
//   close    the schedule played with these passes, then gradients, optimizer and gathers of
//            parameters; what all of this traffic occupies a link, at least
//
// Collectives of a GPU hold some of its units, so those of FSDP slow the kernels that run beside
// them: traffic that occupies a link for X, more than the rest of the step that is not dense
// kernels, has to run beside those. So a step of kernels at full speed that takes base, H of it
// dense, takes at least base + s x (X - (base - H)), where s is the share of its time that a dense
// run loses (slowdown_of()).
//
// A step that overlaps with the next one (steps_of() is 2) is measured from the end of the first
// step to the end of the second. The rank that ended the first one still has all of its passes to
// do. No other rank can have begun a backward, so its reductions are all to come, and its gathers
// but for those of the warm-up.
//
// Passes whose experts are on chips of their own have no bounds: all are zero.
//
// Several threads may ask one object.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "experiment/bounds/step_bound.h"
#include "experiment/passes/lone_times.h"
#include "experiment/passes/pass_cost.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/stage.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "workload/model/model_spec.h"

namespace stepsim {

class PlanBounds {
 public:
  // `cluster` is that of the plans' steps (cluster_for_steps()). REQUIRES: both outlive it.
  PlanBounds(const ModelSpec& model, const Cluster& cluster)
      : model_(model), cluster_(cluster), times_(cluster) {}

  // All REQUIRE: check(plan, model, places) is empty. Some 0.1 ms, 0.2 ms and 1 ms on a pipeline of
  // 16; the latter two more if they meet a group of chips for the first time.
  Bytes memory(const ParallelPlan& plan);
  struct Quick {
    Bytes memory{};
    Duration step{};
  };
  Quick memory_and_quick(const ParallelPlan& plan);
  Duration close(const ParallelPlan& plan);
  // Returns what is left of a step at least, as StepLimit::behind. `graph`: that of the plan. It
  // holds for the first rank of each stage and its column, whose groups these are the times of.
  std::vector<std::vector<Duration>> behind(const ParallelPlan& plan, const OpGraph& graph);

 private:
  // What plans with equal shares of the model have in common.
  struct Shares {
    LoweredModel lowered;
    std::unique_ptr<LayerCosts> costs;
  };
  // The groups of one column of ranks, by pipeline rank: those with coordinates 0 along all other
  // axes.
  struct Column {
    std::vector<LaneGroups> lanes;
    std::vector<GroupNumber> replicas;
    std::vector<GroupNumber> expert_replicas;
  };

  std::shared_ptr<Shares> shares_of(const ParallelPlan& plan);
  std::shared_ptr<const Column> column_of(const Ranks& mesh, bool divides_width);
  // Returns nullptr if the order depends on times.
  std::shared_ptr<const PipelineSchedule> order_of(const ParallelPlan& plan);

  enum class Depth : std::uint8_t { kMemory, kPasses, kReplicas };
  PlanCosts costs_of(const ParallelPlan& plan, Depth depth);
  // `column` is nullptr for memory alone.
  RankCost rank_cost(const ParallelPlan& plan, const PipelineSchedule& shape, Shares& shares,
                     const Column* column, std::int32_t rank, bool replicas);
  double slowdown_of(double units) const;
  void add_state(const Stage& stage, const Column& column, RankCost& cost);
  const LoneTimes::Lone& replica_traffic(CollectiveOp op, std::int64_t parameters, DataType type,
                                         bool experts, std::int32_t rank, const Column& column);

  const ModelSpec& model_;
  const Cluster& cluster_;
  LoneTimes times_;
  std::mutex mutex_;  // guards the rest
  std::map<std::string, std::shared_ptr<Shares>> shares_;
  std::map<std::string, std::shared_ptr<const Column>> columns_;
  std::map<std::string, std::shared_ptr<const PipelineSchedule>> orders_;
};

}  // namespace stepsim
