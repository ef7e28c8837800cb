#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "proto/plan_text.h"
#include "proto/suggestion.h"
#include "proto/to_spec.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostRanksOfAnAxis = 1 << 20;
constexpr std::int64_t kMostSequences = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 27;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;
constexpr std::int64_t kMostBytesOfAParameter = 64;
constexpr int kMostPrefetch = 1000;
constexpr std::int64_t kMostStages = 10'000;
constexpr std::int64_t kMostLayers = 1'000'000;

// A name, or a file in the notation of `stepsim schedule`.
void read_schedule(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  if (const auto name = schedule_named(text)) {
    spec.schedule = *name;
    return;
  }
  std::ifstream file(text);
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error) || !file) {
    std::vector<std::string> names;
    for (const ScheduleName name : kScheduleNames) names.emplace_back(name_of(name));
    problems.add("plan.schedule", fmt::format("must be one of {}, or a file; is \"{}\"{}",
                                              schedule_names(), text, did_you_mean(text, names)));
    return;
  }
  try {
    spec.own_schedule = parse_schedule(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const ConfigError& mistakes) {
    for (const Problem& problem : mistakes.problems()) {
      problems.add("plan.schedule: " + text + ": " + problem.field, problem.message);
    }
  }
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

// "7,8*14,7": a stage of 7 layers, 14 of 8, one of 7. People write 14*8 for it, too: the reading
// that makes as many stages as the pipeline has is meant. REQUIRES: the schedule has been read.
void read_layout(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  static const std::regex kPart(R"(\s*(\d{1,6})\s*(?:\*\s*(\d{1,6}))?\s*)");
  std::istringstream parts(text);
  std::vector<std::int64_t> swapped;
  for (std::string part; std::getline(parts, part, ',');) {
    std::smatch match;
    const bool good = std::regex_match(part, match, kPart);
    const std::int64_t layers = good ? std::stoll(match[1]) : 0;
    const std::int64_t times = good && match[2].matched ? std::stoll(match[2]) : 1;
    if (!good || times > kMostStages || layers > kMostLayers) {
      problems.add(
          "plan.layout",
          "must be layers of each stage such as 20,20,20,20 or 7,8*14,7; is \"" + text + "\"");
      spec.layout.clear();
      return;
    }
    spec.layout.insert(spec.layout.end(), static_cast<std::size_t>(times), layers);
    const bool is_product = match[2].matched && layers <= kMostStages;
    swapped.insert(swapped.end(), static_cast<std::size_t>(is_product ? layers : 1),
                   is_product ? times : layers);
  }
  const auto stages = [](const std::vector<std::int64_t>& layout) {
    return static_cast<std::int64_t>(layout.size());
  };
  const std::int64_t wanted = stages_of(spec);
  if (stages(spec.layout) != wanted && stages(swapped) == wanted) spec.layout = std::move(swapped);
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
  const auto count = [&problems](bool is_given, const char* field, std::int64_t given,
                                 std::int64_t& value) {
    if (!is_given) return;
    check_range(field, std::int64_t{1}, kMostSequences, given, problems);
    value = given;
  };
  count(plan.has_chunks(), "chunks", plan.chunks(), spec.chunks);
  count(plan.has_microbatch_group(), "microbatch_group", plan.microbatch_group(),
        spec.microbatch_group);
  count(plan.has_memory_limit(), "memory_limit", plan.memory_limit(), spec.memory_limit);
  if (plan.has_overlap_pipeline()) spec.overlap_pipeline = plan.overlap_pipeline();
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
  if (plan.has_schedule()) read_schedule(plan.schedule(), spec, problems);
  if (plan.has_layout()) read_layout(plan.layout(), spec, problems);
  refuse_what_is_not_there_yet(plan, problems);
  // What is reported stands as 0 from here on, which later checks pass over.
  check_sizes(spec, problems);
  return spec;
}

}  // namespace stepsim
