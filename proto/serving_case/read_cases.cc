#include "proto/serving_case/read_cases.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostServingProblems = 1000;
constexpr std::int64_t kMostMicroseconds = 1'000'000'000'000;  // 11 days
constexpr std::int64_t kMostCaseBlocks = 1 << 27;
constexpr std::int64_t kMostCaseTokens = kMostRequestTokens;

struct WholeLimits {
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

// Fields of one JSON object. What is wrong with them goes to the problems of the file.
class ObjectReader {
 public:
  ObjectReader(std::string place, const Json* object, std::vector<Problem>& problems)
      : place_(std::move(place)), object_(object), problems_(problems) {
    if (object_ == nullptr || object_->is_object()) return;
    complain("", "must be an object, is " + shown(*object_));
    object_ = nullptr;
  }

  // nullptr: there is none, which has been said.
  const Json* find(const char* key) {
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(key);
    if (found != object_->end()) return &*found;
    complain(key, "is missing");
    return nullptr;
  }

  std::int64_t whole(const char* key, const WholeLimits& limits) {
    const Json* const value = find(key);
    if (value == nullptr) return limits.low;
    if (value->is_number_integer() && *value >= limits.low && *value <= limits.high) {
      return value->get<std::int64_t>();
    }
    complain(key, "must be a whole number from " + std::to_string(limits.low) + " to " +
                      std::to_string(limits.high) + ", is " + shown(*value));
    return limits.low;
  }

  bool truth(const char* key) {
    const Json* const value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) complain(key, "must be true or false, is " + shown(*value));
    return value->is_boolean() && value->get<bool>();
  }

  double share(const char* key) {
    const Json* const value = find(key);
    if (value == nullptr) return 0;
    if (value->is_number() && *value >= 0 && *value <= 1) return value->get<double>();
    complain(key, "must be a number from 0 to 1, is " + shown(*value));
    return 0;
  }

  ObjectReader object(const char* key) { return {place_of(key), find(key), problems_}; }

  // Calls `read` with a reader of each element.
  template <typename Read>
  void list(const char* key, Read read) {
    const Json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) {
      complain(key, "must be a list, is " + shown(*value));
      return;
    }
    for (std::size_t i = 0; i < value->size(); ++i) {
      read(ObjectReader(place_of(key) + "[" + std::to_string(i) + "]", &(*value)[i], problems_));
    }
  }

  void refuse_others(std::initializer_list<const char*> keys) {
    if (object_ == nullptr) return;
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& [key, value] : object_->items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      complain(key,
               "no such field" + did_you_mean(key, known, "There are: " + comma_separated(known)));
    }
  }

  void complain(const std::string& key, std::string message) {
    problems_.push_back({place_of(key), std::move(message)});
  }

 private:
  std::string place_of(const std::string& key) const {
    if (key.empty()) return place_;
    return place_ + (place_.ends_with(' ') ? "" : ".") + shortened(key);
  }

  std::string place_;
  const Json* object_;
  std::vector<Problem>& problems_;
};

EngineOptions read_engine(ObjectReader engine, ObjectReader speculation) {
  EngineOptions options;
  options.cache.prefix_cache = false;
  options.batching.budget = engine.whole("token_budget", {1, 1 << 30});
  options.batching.sequences = engine.whole("max_sequences", {1, kMostRequests});
  options.cache.block = engine.whole("block_tokens", {1, 1 << 20});
  options.cache.reserve_whole_sequence = engine.truth("reserve_whole_sequence");
  options.cache.watermark = engine.share("watermark");
  options.batching.chunked_prefill = engine.truth("chunked_prefill");
  const std::int64_t threshold = engine.whole("long_prefill_threshold", {0, kMostCaseTokens});
  if (threshold > 0) options.batching.long_prefill_threshold = threshold;
  options.cache.kv_blocks = engine.whole("kv_blocks", {1, kMostCaseBlocks});
  engine.refuse_others({"token_budget", "max_sequences", "block_tokens", "reserve_whole_sequence",
                        "watermark", "chunked_prefill", "long_prefill_threshold", "kv_blocks"});
  options.speculation.drafts = speculation.whole("drafts", {0, 1024});
  options.speculation.accepted = speculation.whole("accepted", {0, 1024});
  speculation.refuse_others({"drafts", "accepted"});
  return options;
}

LinearStepTime::Rates read_step_time(ObjectReader step) {
  const WholeLimits limits{0, kMostMicroseconds};
  const auto time = [&](const char* key) {
    return Duration(std::chrono::microseconds(step.whole(key, limits)));
  };
  const LinearStepTime::Rates rates{
      .base = time("base_us"), .token = time("per_token_us"), .kv = time("per_kv_token_us")};
  step.refuse_others({"base_us", "per_token_us", "per_kv_token_us"});
  return rates;
}

Request read_request(ObjectReader request) {
  const WholeLimits tokens{1, kMostCaseTokens};
  Request read;
  read.arrival.since_start =
      std::chrono::microseconds(request.whole("arrival_us", {0, kMostMicroseconds}));
  read.input_tokens = static_cast<std::int32_t>(request.whole("input_tokens", tokens));
  read.output_tokens = static_cast<std::int32_t>(request.whole("output_tokens", tokens));
  return read;
}

CaseAnswer read_expected(ObjectReader expected) {
  CaseAnswer answer;
  answer.end_us = expected.whole("end_us", {});
  answer.steps = expected.whole("steps", {});
  answer.peak_kv_blocks = expected.whole("peak_kv_blocks", {});
  expected.list("requests", [&answer](ObjectReader request) {
    CaseAnswer::Request& read = answer.requests.emplace_back();
    read.first_token_us = request.whole("first_token_us", {});
    read.last_token_us = request.whole("last_token_us", {});
    read.preemptions = request.whole("preemptions", {});
    read.longest_gap_us = request.whole("longest_gap_us", {});
  });
  return answer;
}

SchedulerCase read_case(const Json& json, const std::string& place,
                        std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  ObjectReader reader(place + " ", &json, problems);
  SchedulerCase read;
  if (const Json* const id = reader.find("id")) {
    if (!id->is_string() && !id->is_number_integer()) {
      reader.complain("id", "must be a string or a whole number, is " + shown(*id));
    }
    read.id = json_text(*id);
  }
  read.engine = read_engine(reader.object("engine"), reader.object("speculation"));
  read.step_time = read_step_time(reader.object("step_time"));
  read.requests.tenants.emplace_back();
  reader.list("requests", [&read](ObjectReader request) {
    read.requests.requests.push_back(read_request(request));
  });
  const bool has_answer =
      json.is_object() && json.contains("expected") && !json["expected"].is_null();
  if (has_answer) read.expected = read_expected(reader.object("expected"));
  if (problems.size() > before) return read;
  for (Problem& problem : check(read)) {
    problems.push_back({place + " " + problem.field, std::move(problem.message)});
  }
  return read;
}

}  // namespace

std::vector<SchedulerCase> read_cases(const std::string& path) {
  const TextOrProblem file = read_input(path, InputKind::kTable);
  if (!file.text) throw ConfigError({{path, "can't be read: " + file.problem}});
  std::vector<SchedulerCase> cases;
  std::vector<Problem> problems;
  std::size_t line_number = 0;
  for (const std::string_view line : split_text(*file.text, '\n')) {
    const std::string place = path + ":" + std::to_string(++line_number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const JsonOrProblem json = parse_json(line);
    if (!json.value) {
      problems.push_back({place, json.problem});
    } else {
      cases.push_back(read_case(*json.value, place, problems));
    }
    if (problems.size() >= kMostServingProblems) break;
  }
  if (cases.empty() && problems.empty()) problems.push_back({path, "has no cases"});
  throw_if_any(std::move(problems));
  return cases;
}

}  // namespace stepsim
