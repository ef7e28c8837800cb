#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string>
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
constexpr std::int64_t kMostStages = 10'000;

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

void read_recompute(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    if (text == name_of(recompute)) {
      spec.recompute = recompute;
      return;
    }
  }
  problems.add("plan.recompute", "must be none, selective or full; is \"" + text + "\"");
}

// "7,14*8,7": a stage of 7 layers, eight of 14, one of 7.
void read_layout(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  static const std::regex kPart(R"(\s*(\d{1,6})\s*(?:\*\s*(\d{1,6}))?\s*)");
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::smatch match;
    const bool good = std::regex_match(part, match, kPart);
    const std::int64_t times = good && match[2].matched ? std::stoll(match[2]) : 1;
    if (!good || times > kMostStages) {
      problems.add(
          "plan.layout",
          "must be layers of each stage such as 20,20,20,20 or 7,14*8,7; is \"" + text + "\"");
      spec.layout.clear();
      return;
    }
    spec.layout.insert(spec.layout.end(), static_cast<std::size_t>(times), std::stoll(match[1]));
  }
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
  if (plan.has_recompute()) read_recompute(plan.recompute(), spec, problems);
  if (plan.has_optimizer()) {
    if (plan.optimizer() != "adam" && plan.optimizer() != "none") {
      problems.add("plan.optimizer", "must be adam or none; is \"" + plan.optimizer() + "\"");
    }
    spec.optimizer = plan.optimizer() == "none" ? Optimizer::kNone : Optimizer::kAdam;
  }
  if (plan.has_layout()) read_layout(plan.layout(), spec, problems);
  check_schedule(plan, problems);
  refuse_what_is_not_there_yet(plan, problems);
  // What is reported stands as 0 from here on, which later checks pass over.
  check_sizes(spec, problems);
  return spec;
}

}  // namespace stepsim
