#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "proto/plan_text.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

// Schedules that have a name here but no lowering yet: refused as such, not as a misspelling.
constexpr std::array kSchedulesToCome = {"naive",         "naive_sequential",
                                         "gpipe",         "gpipe_lifo",
                                         "eager_1f1b",    "interleaved_1f1b",
                                         "breadth_first", "breadth_first_lifo",
                                         "zb_h1",         "zb_h1_quickstart",
                                         "zb_h2",         "zb_auto_1p",
                                         "zb_auto_2p",    "interleaved_zb1p",
                                         "zbv_hand",      "zbv_auto",
                                         "v_half",        "v_min",
                                         "dualpipe",      "dualpipev",
                                         "chimera",       "hanayo",
                                         "optimal"};

constexpr std::int64_t kMostRanksOfAnAxis = 1 << 20;
constexpr std::int64_t kMostSequences = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 27;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;
constexpr std::int64_t kMostBytesOfAParameter = 64;
constexpr int kMostPrefetch = 1000;

void check_schedule(const file::Plan& plan, ProblemList& problems) {
  const std::string_view supported = name_of(ScheduleName::kOneForwardOneBackward);
  if (!plan.has_schedule() || plan.schedule() == supported) return;
  const bool to_come = std::find(kSchedulesToCome.begin(), kSchedulesToCome.end(),
                                 plan.schedule()) != kSchedulesToCome.end();
  problems.add("plan.schedule",
               fmt::format("must be {}{}; is \"{}\"", supported,
                           to_come ? ", the only schedule that can be simulated so far" : "",
                           plan.schedule()));
}

// Parts of a plan that have a key already, but no lowering yet.
void refuse_what_is_not_there_yet(const file::Plan& plan, ProblemList& problems) {
  const auto only_one = [&problems](bool has, std::int64_t value, const char* field,
                                    const char* what) {
    if (!has || value == 1) return;
    problems.add(std::string("plan.") + field,
                 fmt::format("must be 1: {} can't be simulated yet; is {}", what, value));
  };
  only_one(plan.has_cp(), plan.cp(), "cp", "context parallelism");
  only_one(plan.has_ep(), plan.ep(), "ep", "expert parallelism");
  only_one(plan.has_etp(), plan.etp(), "etp", "expert tensor parallelism");
  only_one(plan.has_chunks(), plan.chunks(), "chunks", "virtual stages");
  if (plan.has_recompute() && plan.recompute() != "none") {
    problems.add("plan.recompute",
                 "must be none: recompute can't be simulated yet; is \"" + plan.recompute() + "\"");
  }
  if (plan.has_layout()) {
    problems.add("plan.layout",
                 "must not be given: every stage has equally many layers so far; "
                 "is \"" +
                     plan.layout() + "\"");
  }
  if (plan.has_zero() && plan.zero() != 0 && plan.zero() != 1 && plan.zero() != 3) {
    problems.add("plan.zero",
                 fmt::format("must be 0 (replicated), 1 (optimizer state divided) or 3 (FSDP){}; "
                             "is {}",
                             plan.zero() == 2 ? ", 2 can't be simulated yet" : "", plan.zero()));
  }
}

// The upper limits are far above anything that exists; they keep products of sizes in 64 bits.
template <typename Integer>
void check_range(const char* field, Integer least, Integer most, Integer& value,
                 ProblemList& problems) {
  if (value >= least && value <= most) return;
  problems.add(std::string("plan.") + field,
               value < least ? fmt::format("must be at least {}, is {}", least, value)
                             : fmt::format("must be at most {}, is {}", most, value));
  value = 0;
}

void check_sizes(ParallelPlan& plan, ProblemList& problems) {
  const auto within = [&problems](const char* field, std::int64_t least, std::int64_t most,
                                  std::int64_t& value) {
    check_range(field, least, most, value, problems);
  };
  within("tp", 1, kMostRanksOfAnAxis, plan.tp);
  within("dp", 1, kMostRanksOfAnAxis, plan.dp);
  within("pp", 1, kMostRanksOfAnAxis, plan.pp);
  within("microbatch", 1, kMostSequences, plan.microbatch);
  within("global_batch", 1, kMostSequences, plan.global_batch);
  within("sequence", 1, kMostTokens, plan.sequence);
  within("gradient_bucket_parameters", 1, kMostParameters, plan.gradient_bucket_parameters);
  check_range("prefetch", 0, kMostPrefetch, plan.prefetch, problems);
  within("optimizer_bytes", 1, kMostBytesOfAParameter, plan.optimizer_bytes);
}

}  // namespace

ParallelPlan to_plan(const file::Plan& plan, ProblemList& problems) {
  ParallelPlan spec;
  if (plan.has_tp()) spec.tp = plan.tp();
  if (plan.has_dp()) spec.dp = plan.dp();
  if (plan.has_pp()) spec.pp = plan.pp();
  if (plan.has_microbatch()) spec.microbatch = plan.microbatch();
  spec.global_batch = plan.global_batch();
  spec.sequence = plan.sequence();
  if (!plan.has_global_batch()) {
    problems.add("plan.global_batch", "must be given: sequences of a step");
  }
  if (!plan.has_sequence()) problems.add("plan.sequence", "must be given: tokens of a sequence");
  if (plan.has_sequence_parallel()) spec.sequence_parallel = plan.sequence_parallel();
  if (plan.zero() == 1 || plan.zero() == 3) spec.zero = plan.zero();
  spec.allow_idle_chips = plan.allow_idle_chips();
  if (plan.has_gradient_bucket_parameters()) {
    spec.gradient_bucket_parameters = plan.gradient_bucket_parameters();
  }
  if (plan.has_prefetch()) spec.prefetch = plan.prefetch();
  if (plan.has_overlap_gradients()) spec.overlap_gradients = plan.overlap_gradients();
  if (plan.has_overlap_tensor()) spec.overlap_tensor = plan.overlap_tensor();
  if (plan.has_optimizer_bytes()) spec.optimizer_bytes = plan.optimizer_bytes();
  if (plan.has_gradient_bytes()) spec.gradient_bytes = plan.gradient_bytes();
  if (plan.has_order()) read_order(plan.order(), spec, problems);
  read_map(plan.map(), spec, problems);
  if (plan.has_dtype()) {
    if (const auto type = data_type_named(plan.dtype())) {
      spec.type = *type;
    } else {
      problems.add("plan.dtype",
                   "must be one of " + data_type_names() + "; is \"" + plan.dtype() + "\"");
    }
  }
  check_schedule(plan, problems);
  refuse_what_is_not_there_yet(plan, problems);
  // What is reported stands as 0 from here on, which later checks pass over.
  check_sizes(spec, problems);
  return spec;
}

}  // namespace stepsim
