// Reads what people write behind the options of `stepsim serve`: engines, step times, transfers,
// objectives. Each function adds every problem of its text, named by its option.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/serve.h"
#include "serving/serving_metrics.h"
#include "sim/base/error.h"

namespace stepsim {

// "vllm", "sglang,chunk=4096", "budget=8192,sequences=256": a name, then keys; vllm without a name.
ReplicaGroup read_engine(std::string_view text, std::vector<Problem>& problems);

// A group of --prefill or --decode: "workers=3,budget=4096", on top of the engine.
ReplicaGroup read_group(std::string_view text, const std::string& option,
                        const ReplicaGroup& engine, std::vector<Problem>& problems);

// "10ms", or "linear:base=5ms,token=2us,kv=1ns". Refuses steps that take no time.
LinearStepTime::Rates read_step_time(std::string_view text, const std::string& option,
                                     std::vector<Problem>& problems);

// "5ms", or "linear:base=1ms,token=2us".
TimedKvTransport::Rates read_transfer(std::string_view text, const std::string& option,
                                      std::vector<Problem>& problems);

// "ttft=2s,tpot=50ms,end-to-end=20s".
ServiceObjective read_objective(std::string_view text, std::vector<Problem>& problems);

std::optional<RouterPolicy> router_named(std::string_view name);

}  // namespace stepsim
