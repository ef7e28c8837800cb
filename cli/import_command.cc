#include "cli/import_command.h"

#include "proto/hugging_face/import_model.h"
#include "sim/base/error.h"

namespace stepsim {

std::string import_text(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw ConfigError({Problem{"FORMAT", "must be given: hf"}});
  if (arguments[0] != "hf") {
    throw ConfigError({{"FORMAT", "must be hf, is \"" + arguments[0] + "\""}});
  }
  if (arguments.size() == 1) throw ConfigError({Problem{"CONFIG", "must be given: a config.json"}});
  if (arguments.size() > 2) {
    throw ConfigError({{arguments[2], "stepsim import hf takes one CONFIG"}});
  }
  return import_hugging_face(arguments[1]);
}

}  // namespace stepsim
