#include "cli/command_line.h"

#include <string_view>

#include "proto/suggestion.h"
#include "traces/output_file.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr const char* kWords = "words";

}  // namespace

std::string CommandLine::value(const std::string& option) const {
  return options.count(option) == 0 ? "" : options[option].as<std::string>();
}

CommandLine read_command_line(const std::vector<std::string>& arguments,
                              const po::options_description& options,
                              std::vector<Problem>& problems) {
  po::options_description all;
  all.add(options).add_options()(kWords, po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add(kWords, -1);
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  CommandLine line;
  try {
    const int style = po::command_line_style::unix_style ^ po::command_line_style::allow_guessing;
    const po::parsed_options parsed = po::command_line_parser(arguments)
                                          .options(all)
                                          .positional(positional)
                                          .style(style)
                                          .allow_unregistered()
                                          .run();
    for (const auto& option : parsed.options) {
      if (!option.unregistered) continue;
      const std::string name = option.original_tokens.front();
      const std::string suggestion =
          did_you_mean(std::string_view(name).substr(0, name.find('=')), names);
      problems.push_back({name, "no such option" + (suggestion.empty() ? "." : suggestion) +
                                    " There are: " + comma_separated(names)});
    }
    po::store(parsed, line.options);
  } catch (const po::error& error) {
    problems.push_back({"command line", error.what()});
  }
  if (line.options.count(kWords) != 0) {
    line.words = line.options[kWords].as<std::vector<std::string>>();
  }
  return line;
}

std::string read_output_path(const CommandLine& line, const std::string& option, bool may_be_stdout,
                             std::vector<Problem>& problems) {
  const std::string path = line.value(option);
  if (line.options.count(option) == 0) return path;
  if (path.empty()) {
    problems.push_back({"--" + option, "must not be empty"});
  } else if (path != "-") {
    for (const Problem& problem : check_writable(path)) {
      problems.push_back({"--" + option + " " + problem.field, problem.message});
    }
  } else if (!may_be_stdout) {
    problems.push_back({"--" + option, "must be a file, is \"-\""});
  }
  return path;
}

}  // namespace stepsim
