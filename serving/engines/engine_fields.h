// The options of engines as people write them: names, limits, what each does. `stepsim help engine`
// shows them; --engine, --prefill and --decode take them.

#pragma once

#include <string_view>
#include <vector>

#include "serving/engines/engine_options.h"
#include "sim/base/error.h"
#include "sim/base/field.h"

namespace stepsim {

const FieldTable<EngineOptions>& engine_fields();

// Returns the problems of options that contradict each other. `option` names them: "--engine".
std::vector<Problem> check_engine(const EngineOptions& options, std::string_view option);

}  // namespace stepsim
