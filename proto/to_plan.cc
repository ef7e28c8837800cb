#include <algorithm>
#include <string>

#include "proto/messages/read_fields.h"
#include "proto/to_spec.h"
#include "schedules/plan/keys/key_groups.h"

namespace stepsim {
namespace {

// A part of state_bytes may be given in addition if it equals what state_bytes counts.
void check_part(bool given, std::int64_t part, std::int64_t counted, const char* field,
                const file::Plan& plan, ProblemList& problems) {
  if (!given || !plan.has_state_bytes() || part == counted) return;
  problems.add(path_of_key(field), "is " + std::to_string(part) +
                                       ", but state_bytes = " + std::to_string(plan.state_bytes()) +
                                       " counts " + std::to_string(counted) +
                                       " for it: leave out one of the two");
}

// Keys of inference that stand for others: batch is global_batch, and decode makes one token. What
// a pass leaves out is not what training leaves out: no sequence parallelism, unless each tensor
// rank sends its own tokens to experts on other chips, and context ranks that gather.
file::Plan with_inference_keys(file::Plan plan, ProblemList& problems) {
  if (plan.has_batch()) {
    if (plan.has_global_batch() && plan.global_batch() != plan.batch()) {
      problems.add("pass.batch", "is " + std::to_string(plan.batch()) +
                                     ", but global_batch, which means the same, is " +
                                     std::to_string(plan.global_batch()) + ": leave one out");
    }
    plan.set_global_batch(plan.batch());
  }
  if (plan.inference() == name_of(Inference::kDecode) && !plan.has_sequence()) {
    plan.set_sequence(1);
  }
  const bool is_pass = !plan.inference().empty() && plan.inference() != name_of(Inference::kNone);
  if (is_pass && !plan.has_sequence_parallel()) {
    plan.set_sequence_parallel((plan.ffn_chips() > 0 && plan.tp() > 1) || plan.tensor_width() > 1);
  }
  if (is_pass && plan.cp() > 1 && !plan.has_cp_mode()) {
    plan.set_cp_mode(std::string(name_of(ContextMode::kAllGather)));
  }
  return plan;
}

// What is no schedule has no rules for these.
void leave_to_schedule(ProblemList& problems) {
  const auto is_of_schedule = [](const Problem& problem) {
    return problem.field == path_of_key("schedule");
  };
  if (std::ranges::none_of(problems.all(), is_of_schedule)) return;
  for (const char* key : {"chunks", "layout", "microbatch_group", "memory_limit"}) {
    problems.mark_reported(path_of_key(key));
  }
}

}  // namespace

ParallelPlan to_plan(const file::Plan& message, ProblemList& problems) {
  const file::Plan plan = with_inference_keys(message, problems);
  ParallelPlan spec;
  for (const KeyGroup group : kKeyGroups) {
    read_fields(plan, fields_of(group), spec, std::string(name_of(group)) + ".", problems);
  }
  leave_to_schedule(problems);
  spec.software = plan.software();
  check_part(plan.has_gradient_bytes(), plan.gradient_bytes(), spec.update.gradient_bytes,
             "gradient_bytes", plan, problems);
  check_part(plan.has_optimizer_bytes(), plan.optimizer_bytes(), spec.update.optimizer_bytes,
             "optimizer_bytes", plan, problems);
  return spec;
}

}  // namespace stepsim
