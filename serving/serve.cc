#include "serving/serve.h"

#include <cassert>
#include <string>

#include "serving/serving_run.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedRequests = 20;
constexpr std::int64_t kMostNamedBlocks = 1 << 27;

// Returns why a replica can't serve such a request, or "".
std::string why_not(const Request& request, const ReplicaGroup& group) {
  const EngineOptions& options = group.options;
  const std::int64_t input = request.input_tokens;
  const std::int64_t whole = input + request.output_tokens;
  if (options.batching.max_length && whole > *options.batching.max_length) {
    return "has " + std::to_string(whole) + " tokens with its answer, must have at most " +
           std::to_string(*options.batching.max_length) + " (max_length)";
  }
  // The last token is never put into the cache, but engines that reserve for it want its block.
  std::int64_t held =
      group.engine->reserves_answer(options) ? whole + options.speculation.drafts : whole - 1;
  if (group.engine->waiting_caches != nullptr) held = options.batching.max_length.value_or(held);
  const std::int64_t blocks = options.cache.shape.whole(held, options.cache.block);
  if (options.cache.kv_blocks && blocks > *options.cache.kv_blocks) {
    return "needs " + std::to_string(blocks) + " KV blocks of " +
           std::to_string(options.cache.block) + " tokens, must need at most " +
           std::to_string(*options.cache.kv_blocks) + " (kv_blocks)";
  }
  if (!options.batching.chunked_prefill && input > options.batching.budget_of_rank()) {
    return "has a prompt of " + std::to_string(input) + " tokens, must have at most " +
           std::to_string(options.batching.budget_of_rank()) + " (budget) without chunked_prefill";
  }
  return "";
}

void problems_of_engines(const ModelReplicas& model, std::vector<Problem>& problems) {
  if (!model.decode) return;
  for (const EngineRow* const engine : {model.replicas.engine, model.decode->engine}) {
    if (engine->joins_running) continue;
    problems.push_back(
        {"--engine", "must be another engine than " + std::string(engine->name) +
                         " for prefill and decode apart: requests come into its batches at "
                         "their start only"});
    return;
  }
}

// Blocks with names take memory.
void problems_of_cache(const RequestList& requests, std::size_t model, const ReplicaGroup& group,
                       std::vector<Problem>& problems) {
  const EngineOptions options = with_useful_cache(group.options, requests, model);
  if (!options.cache.prefix_cache ||
      kv_blocks_of(*group.engine, options, requests, model) * group.count <= kMostNamedBlocks) {
    return;
  }
  problems.push_back(
      {"--engine kv-blocks", "must be given with prefix-cache: all replicas have more than " +
                                 std::to_string(kMostNamedBlocks) + " blocks"});
}

}  // namespace

ReplicaGroup replica_of(std::string_view engine) {
  const EngineRow* const row = find_engine(engine);
  assert(row != nullptr);
  return {.engine = row, .options = row->defaults};
}

std::vector<Problem> check(const RequestList& requests, const ServingOptions& options) {
  std::vector<Problem> problems;
  std::vector<ModelReplicas> models;
  for (std::size_t i = 0; i < options.models(); ++i) {
    const ModelReplicas& model = models.emplace_back(options.model(i));
    problems_of_engines(model, problems);
    problems_of_cache(requests, i, model.replicas, problems);
    if (model.decode) problems_of_cache(requests, i, *model.decode, problems);
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < requests.requests.size(); ++i) {
    const Request& request = requests.requests[i];
    const ModelReplicas& model = models[requests.model_of(request)];
    std::string why = why_not(request, model.replicas);
    if (why.empty() && model.decode) why = why_not(request, *model.decode);
    if (why.empty() || ++wrong > kListedRequests) continue;
    problems.push_back({"requests[" + std::to_string(i) + "]", why});
  }
  if (wrong > kListedRequests) {
    problems.push_back(
        {"requests", std::to_string(wrong - kListedRequests) + " more are too long"});
  }
  return problems;
}

ServingResult simulate_serving(const RequestList& requests, const ServingOptions& options,
                               const ServingCosts& costs,
                               const std::function<void(double)>& progress) {
  assert(check(requests, options).empty() && costs.others.size() == options.others.size());
  assert(!options.decode || (costs.decode != nullptr && costs.transport != nullptr));
  return ServingRun(requests, options, costs, progress).run();
}

}  // namespace stepsim
