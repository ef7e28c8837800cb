// Reads the arguments of Megatron-LM, from what names them:
//
//   a log        the block "arguments" that a run prints, with all defaults; of several the last
//   a script     the command that starts pretrain_gpt.py, its variables and arrays resolved; or a
//                file of arrays that another script takes
//   a list       --tensor-model-parallel-size 8 --bf16 ...
//   YAML         MODEL_ARGS of Megatron-LM's functional tests
//
// Keys are the names that the arguments have in the program ("tensor_model_parallel_size"), also
// for flags that set another key ("--disable-bias-linear": add_bias_linear false). Those of
// torchrun are among them (nnodes, nproc_per_node).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/settings/settings.h"

namespace stepsim {

enum class MegatronSource { kLog, kFlags };

// `overrides` are KEY=VALUE: arguments, and variables of a script. Returns nullopt, with a problem,
// if the text has no arguments of Megatron.
std::optional<MegatronSource> read_megatron_flags(std::string_view text, const std::string& path,
                                                  const std::vector<std::string>& overrides,
                                                  Settings& settings,
                                                  std::vector<Problem>& problems);

// Returns the flag that gives a key a value, "hidden-size" for hidden_size, and for truth values
// that are off "disable-bias-linear" for add_bias_linear; "": that is the default, which no flag
// gives.
std::string megatron_flag(std::string_view key, bool is_off);

}  // namespace stepsim
