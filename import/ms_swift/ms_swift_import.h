// stepsim import ms-swift: a script that runs `megatron sft|pt` or `swift sft|pt`, or its YAML,
// becomes an experiment (modelscope/ms-swift, swift/megatron/arguments and swift/arguments).
// `stepsim import megatron` hands such scripts on to it. Commands of reinforcement learning and
// preferences run other models in a step, and are refused.

#pragma once

#include <string>
#include <vector>

#include "import/importer.h"
#include "import/settings/settings.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_ms_swift(const ImportRequest& request);

// The settings of a command of ms-swift (its words are in "swift_program": "megatron sft").
Imported import_swift_settings(const std::string& kind, const std::vector<std::string>& paths,
                               Settings& settings, const ImportRequest& request,
                               std::vector<Problem>& problems);

}  // namespace stepsim
