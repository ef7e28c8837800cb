#include "cli/import_command.h"

#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/standard_output.h"
#include "proto/hugging_face/import_model.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description import_option_list() {
  po::options_description options("Options", 100, 50);
  add_input_option(options);
  return options;
}

ExitStatus run_import_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const std::vector<std::string> words =
      read_command_line(arguments, import_option_list(), problems).words;
  if (words.empty()) {
    problems.push_back({"FORMAT", "must be given: hf"});
  } else if (words[0] != "hf") {
    problems.push_back({"FORMAT", "must be hf, is \"" + words[0] + "\""});
  } else if (words.size() == 1) {
    problems.push_back({"CONFIG", "must be given: a config.json"});
  } else if (words.size() > 2) {
    problems.push_back({words[2], "stepsim import hf takes one CONFIG"});
  }
  throw_if_any(std::move(problems));
  print(import_hugging_face(words[1]));
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
    .options = import_option_list,
    .run = run_import_command,
};

}  // namespace stepsim
