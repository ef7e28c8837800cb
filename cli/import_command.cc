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
  options.add_options()("as", po::value<std::string>()->value_name("FAMILY"),
                        "read the file as one of this family, of which its own is another name");
  add_input_option(options);
  return options;
}

ExitStatus run_import_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, import_option_list(), problems);
  const std::vector<std::string>& words = line.words;
  if (words.size() == 1 && words[0] == "families") {
    throw_if_any(std::move(problems));
    print(families_text());
    return ExitStatus::kDone;
  }
  if (words.empty()) {
    problems.push_back({"FORMAT", "must be given: hf, or families"});
  } else if (words[0] != "hf") {
    problems.push_back({"FORMAT", "must be hf or families, is \"" + words[0] + "\""});
  } else if (words.size() == 1) {
    problems.push_back({"CONFIG", "must be given: a config.json"});
  } else if (words.size() > 2) {
    problems.push_back({words[2], "stepsim import hf takes one CONFIG"});
  }
  throw_if_any(std::move(problems));
  const bool has_family = line.options.contains("as");
  print(import_hugging_face(words[1], has_family ? line.options["as"].as<std::string>() : ""));
  return ExitStatus::kDone;
}

}  // namespace

constinit const Subcommand kImportSubcommand = {
    .name = "import",
    .arguments = "hf CONFIG.json",
    .summary = "print a published model as a model file",
    .description = R"(stepsim import prints a published model as a model file of stepsim.

Usage:
  stepsim import hf CONFIG.json [--as FAMILY] > my-model.textproto
  stepsim import families

CONFIG.json is the config.json of a model on Hugging Face, or the folder that holds it. The
second form lists the families that are read. Of a model with several parts the text's counts.
A run also reads such a file directly: stepsim run --model config.json ...
)",
    .options = import_option_list,
    .run = run_import_command,
};

}  // namespace stepsim
