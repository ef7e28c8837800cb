#include "tests/fuzz/serving_targets.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/serve/serve_options.h"
#include "proto/serving_case/read_cases.h"
#include "serving/requests/request_file.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/target_parts.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostServedTokens = 5'000;
constexpr std::int64_t kMostServedBlocks = 100'000;
constexpr std::int64_t kMostServedRequests = 500;

// Steps are at most tokens of prompts in chunks, and of answers again and again.
bool is_soon_served(const RequestList& list) {
  std::int64_t tokens = 0;
  for (const Request& request : list.requests) {
    tokens += std::int64_t{request.input_tokens} + request.output_tokens;
  }
  return tokens <= kMostServedTokens;
}

bool is_small(const ReplicaGroup& group) {
  return group.count <= 8 && group.options.cache.host_blocks <= kMostServedBlocks &&
         group.options.cache.kv_blocks.value_or(1) <= kMostServedBlocks;
}

bool is_small(const RequestSource& source) {
  const auto is_file = [](const std::optional<Length>& length) {
    return length && length->kind == LengthKind::kEmpirical;
  };
  return source.kind != ArrivalKind::kFile && !is_file(source.input) && !is_file(source.output) &&
         source.count.value_or(0) <= kMostServedRequests;
}

// Prompts that are not cut may grow too long for a step; drafts may need more blocks than there
// are.
bool may_get_stuck(const EngineOptions& options) {
  return !options.batching.chunked_prefill || options.speculation.drafts > 0;
}

bool is_small(const ModelReplicas& model) {
  return is_small(model.replicas) && (!model.decode || is_small(*model.decode));
}

bool may_get_stuck(const ModelReplicas& model) {
  return may_get_stuck(model.replicas.options) ||
         (model.decode && may_get_stuck(model.decode->options));
}

void serve_if_small(const ServeOptions& options) {
  std::vector<RequestSource> sources = options.sources;
  for (const ServeOptions& other : options.others) {
    sources.insert(sources.end(), other.sources.begin(), other.sources.end());
  }
  std::vector<ModelReplicas> models;
  for (std::size_t i = 0; i < options.serving.models(); ++i) {
    models.push_back(options.serving.model(i));
  }
  if (!std::ranges::all_of(sources, [](const auto& source) { return is_small(source); }) ||
      !std::ranges::all_of(models, [](const auto& model) { return is_small(model); })) {
    return;
  }
  const RequestList list = make_requests(sources);
  if (!is_soon_served(list)) return;
  throw_if_any(check(list, options.serving));
  LinearStepTime cost(options.step_time.value_or(LinearStepTime::Rates{.base = Duration(1000)}));
  TimedKvTransport transport(options.transfer);
  TimedKvTransport host(options.host_transfer.value_or(TimedKvTransport::Rates{}));
  try {
    simulate_serving(list, options.serving,
                     {.replicas = cost,
                      .decode = &cost,
                      .transport = &transport,
                      .others = std::vector<ModelCosts>(models.size() - 1, {&cost, &cost}),
                      .host = &host});
  } catch (const ServingStuck&) {
    const bool may_be =
        std::ranges::any_of(models, [](const auto& model) { return may_get_stuck(model); });
    require(may_be, "requests are stuck for no reason");
  }
}

}  // namespace

void read_serving_cases(std::string_view input) {
  const InputOnDisk file(input, ".jsonl");
  for (const SchedulerCase& given : read_cases(file.path())) {
    if (!is_soon_served(given.requests)) continue;
    try {
      const CaseAnswer answer = answer_of(given);
      require(answer.peak_kv_blocks <= *given.engine.cache.kv_blocks, "more blocks than there are");
    } catch (const ServingStuck&) {
      require(may_get_stuck(given.engine), "requests are stuck for no reason");
    }
  }
}

void read_serving_requests(std::string_view input) {
  const InputOnDisk file(input, ".csv");
  const RequestRows rows = read_request_file(file.path(), "", true);
  require(!rows.requests.empty(), "neither requests nor problems");
  Time last;
  for (const Request& request : rows.requests) {
    require(request.arrival >= last && request.input_tokens > 0 && request.output_tokens > 0 &&
                request.prefix_tokens <= request.input_tokens,
            "a request that can't be");
    last = request.arrival;
  }
}

void read_serve_words(std::string_view input) {
  const std::vector<std::string> words = parts_of(input, '\n', 30);
  for (const std::string& word : words) {
    // The chip of a release stands in a file, or in the catalog.
    if (word.find('@') != std::string::npos) throw_if_any({{word, "is for people"}});
    for (const std::string_view beginning : {"--j", "--tra", "--requests-", "--max", "--c"}) {
      const bool is_transfer = word.starts_with("--trans");
      if (word.starts_with(beginning) && !is_transfer) throw_if_any({{word, "is for people"}});
    }
  }
  std::vector<Problem> problems;
  const ServeOptions options = read_serve_options(words, problems);
  throw_if_any(std::move(problems));
  serve_if_small(options);
}

}  // namespace stepsim
