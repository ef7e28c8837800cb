// The rules of a plan by section, each in its own file, and the class that states them. A rule that
// fails names the field, its value, the value that it must agree with, and the nearest values that
// are allowed. Values outside a field's own limits have been reported before (plan_fields.h); the
// rules ignore them.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"
#include "sim/network/places.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Returns "4 or 8": the divisors of `whole` nearest to `part`.
std::string nearest_divisors(std::int64_t part, std::int64_t whole);

// Rules collects problems.
class Rules {
 public:
  void require(bool holds, std::string field, std::string message);
  // Requires that `whole` is a multiple of `part`, which is the value of `field`.
  void divides(const std::string& field, std::int64_t part, const std::string& what,
               std::int64_t whole);
  // Requires that `whole`, the value of `field`, is a multiple of `part`.
  void multiple_of(const std::string& field, std::int64_t whole, const std::string& what,
                   std::int64_t part);
  void add(std::vector<Problem> problems);
  bool good() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

// ---- check_axes.cc: the mesh, the batch, and where ranks sit ----

void check_axis_order(const ParallelPlan& plan, Rules& rules);
void check_batch(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_chips(const ParallelPlan& plan, const Places& places, Rules& rules);
void check_domains(const ParallelPlan& plan, const Places& places, Rules& rules);
void check_mapping(const ParallelPlan& plan, const Places& places, Rules& rules);

// ---- check_tensor.cc: what tensor and context ranks divide ----

void check_tensor(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_width(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);  // of weights
void check_documents(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_pictures(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_context(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

// ---- check_stages.cc: layers of the pipeline's stages; its schedule: plan_schedule.h ----

void check_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

// ---- check_experts.cc ----

void check_experts(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
// REQUIRES: the plan has no other problem.
void check_expert_places(const ParallelPlan& plan, const ModelSpec& model, const Places& places,
                         Rules& rules);

// ---- check_sharding.cc: what replicas divide, and how gradients and parameters travel ----

void check_sharding(const ParallelPlan& plan, Rules& rules);
void check_overlap_of_replicas(const ParallelPlan& plan, Rules& rules);

// ---- check_recompute.cc ----

void check_recompute(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

// ---- check_types.cc: types of what is computed, kept and sent, and kinds of kernels ----

void check_types(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

// ---- check_launches.cc: what the host launches ----

void check_launches(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

// ---- check_optimizer.cc: the optimizer's step and its state, and what lives on the host ----

void check_accumulation(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_optimizer(const ParallelPlan& plan, Rules& rules);
void check_adapters(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_offload(const ParallelPlan& plan, Rules& rules);

}  // namespace stepsim
