#include "cli/import_command.h"

#include "cli/standard_output.h"
#include "proto/hugging_face/import_model.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

ExitStatus run_import_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw ConfigError({Problem{"FORMAT", "must be given: hf"}});
  if (arguments[0] != "hf") {
    throw ConfigError({{"FORMAT", "must be hf, is \"" + arguments[0] + "\""}});
  }
  if (arguments.size() == 1) throw ConfigError({Problem{"CONFIG", "must be given: a config.json"}});
  if (arguments.size() > 2) {
    throw ConfigError({{arguments[2], "stepsim import hf takes one CONFIG"}});
  }
  print(import_hugging_face(arguments[1]));
  return ExitStatus::kDone;
}

}  // namespace

constinit const Subcommand kImportSubcommand = {
    .name = "import",
    .arguments = "hf CONFIG.json",
    .summary = "print a published model as a model file",
    .description = R"(stepsim import prints a published model as a model file of stepsim.

Usage:
  stepsim import hf CONFIG.json > my-model.textproto

CONFIG.json is the config.json of a model on Hugging Face. Families: llama, mistral,
mixtral, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gemma, gemma2,
gemma3_text, gpt2, gpt_oss, bloom, starcoder2. A run also reads such a file directly:
stepsim run --model config.json ...
)",
    .options = nullptr,
    .run = run_import_command,
};

}  // namespace stepsim
