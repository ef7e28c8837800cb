// Reads what says of one pool of replicas how it differs from the others: "workers=2,tp=4,cp=2,
// budget=4096" behind --prefill or --decode has keys of a plan and of an engine.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// The keys of a pool: those of a plan, which no engine has, and the others.
struct PoolKeys {
  std::string plan;
  std::string others;
};
PoolKeys split_pool_keys(std::string_view text);

// Returns the value of a key of a plan's text; "" if it has none.
std::string_view value_of_plan(std::string_view plan, std::string_view key);

// Returns the keys of a plan with those of another one in their place, or behind them. A plan
// without keys is a name or a file, to which none can be added: a problem, named by `option`.
std::string with_plan_keys(const std::string& plan, const std::string& own,
                           const std::string& option, std::vector<Problem>& problems);

}  // namespace stepsim
