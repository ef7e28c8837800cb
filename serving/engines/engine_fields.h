// The options of engines as people write them: names, limits, what each does. `stepsim help engine`
// shows them; --engine, --prefill and --decode take them.

#pragma once

#include <string_view>
#include <vector>

#include "serving/engines/engine_table.h"
#include "sim/base/error.h"
#include "sim/fields/field.h"

namespace stepsim {

inline constexpr double kMostStepTokens = 1 << 30;

const FieldTable<EngineOptions>& engine_fields();
std::vector<std::string_view> keys_of(const EngineRow& engine);

// Returns the problems of options that contradict each other. `option` names them: "--engine".
std::vector<Problem> check_engine(const EngineOptions& options, std::string_view option);

}  // namespace stepsim
