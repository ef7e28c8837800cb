// stepsim import maxtext: YAML of MaxText (base.yml, one of its models or of a run) with KEY=VALUE
// over it, or a script that starts it, becomes an experiment. Defaults of base.yml hold for keys
// that no file has; no path in a file is followed.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"
#include "import/settings/settings.h"
#include "proto/catalog/trainer_names.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_maxtext(const ImportRequest& request);

// The same of settings that something else has read. `keys`: what wraps MaxText has other defaults.
Imported import_maxtext_settings(std::string_view kind, const TrainerKeys& keys,
                                 const ImportRequest& request, Settings& settings,
                                 std::vector<Problem>& problems);

// Returns the catalog's name of a model_name of MaxText ("deepseek3-671b" is deepseek-v3); "" if
// there is none.
std::string maxtext_model(std::string_view model_name);

// What global_parameter_scale multiplies (MaxText's get_individual_scales).
struct MaxtextScales {
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t mlp = 1;
  std::int64_t layers = 1;
};
// nullopt unless `scale` is a power of 2 up to 2^20.
std::optional<MaxtextScales> maxtext_scales(std::int64_t scale);

// Returns the tensors of remat_policy custom that are a result of plan.recompute_keep: mlpwo and
// moe_mlpwo for "down".
std::vector<std::string> maxtext_tensors(std::string_view result);

}  // namespace stepsim
