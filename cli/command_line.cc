#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/processes/started_processes.h"
#include "cli/session/progress.h"
#include "cli/session/session.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/base/parallel.h"
#include "sim/base/quantity_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"
#include "traces/files/output_file.h"
#include "traces/files/output_place.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr const char* kWords = "words";
constexpr const char* kMaxInput = "max-input";
constexpr std::int64_t kMostThreads = 1024;

std::vector<std::string> suffixes_of(OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
    case OutputFormat::kChromeTrace:
      return {".json", ".json.gz"};
    case OutputFormat::kTrace:
      return {".json", ".json.gz", ".pftrace"};
    case OutputFormat::kSvg:
      return {".svg"};
    case OutputFormat::kCsv:
      return {".csv", ".csv.gz"};
    case OutputFormat::kTextproto:
      return {".textproto"};
    case OutputFormat::kStore:
      return {".sqlite", ".sqlite3", ".db"};
    case OutputFormat::kHtml:
      return {".html", ".htm"};
    case OutputFormat::kDot:
      break;
  }
  return {".dot", ".gv"};
}

std::string extension_of(const std::string& path) {
  return in_small_letters(std::filesystem::path(path).extension().string());
}

bool promises_another_format(const std::string& path, OutputFormat format) {
  if (extension_of(path).empty()) return false;
  return std::ranges::none_of(suffixes_of(format), [&](const std::string& suffix) {
    return in_small_letters(path).ends_with(suffix);
  });
}

// Returns whether a name such as plots.svg probably means a file.
bool looks_like_output_file(const std::string& path) {
  const std::vector<std::string> suffixes = {".svg", ".png",  ".pdf",  ".jpg", ".jpeg",
                                             ".gif", ".json", ".html", ".csv", ".pftrace"};
  return std::ranges::count(suffixes, extension_of(path)) > 0;
}

std::string why_no_folder(const std::string& folder) {
  std::error_code ignored;
  if (folder.empty()) return "must not be empty";
  if (looks_like_output_file(folder) && !std::filesystem::is_directory(folder, ignored)) {
    return "must be a folder, not a file; is \"" + folder + "\"";
  }
  return {};
}

// The result keeps sums of bytes in 64 bits.
void read_input_settings(const CommandLine& line, std::vector<Problem>& problems) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  InputSettings settings;
  if (line.options.count(kMaxInput) != 0) {
    const std::string text = line.value(kMaxInput);
    settings.most_bytes = parse_bytes(text);
    if (!settings.most_bytes || *settings.most_bytes < Bytes(1) ||
        settings.most_bytes->value() > kMost) {
      problems.push_back({std::string("--") + kMaxInput,
                          "must be " + std::string(accepted_bytes()) +
                              ", at least 1 byte and at most 1 TiB; is \"" + text + "\""});
      settings.most_bytes.reset();
    }
  }
  set_input_settings(settings);
}

// Whatever was read must still be there once the result is written. Outputs are compared with one
// another by refuse_same_output().
void refuse_inputs(const CommandLine& line, const std::string& option, const std::string& path,
                   std::vector<Problem>& problems) {
  constexpr std::array<std::string_view, 13> kOutputs = {
      "json", "html", "csv",   "plot",  "plot-timeline", "svg",          "dot",
      "to",   "out",  "trace", "store", "requests-out",  "write-library"};
  const auto refuse = [&](std::string_view text, const std::string& what) {
    constexpr std::string_view kFile = "file:";  // of requests
    if (text.starts_with(kFile)) text.remove_prefix(kFile.size());
    if (!is_one_file(path, std::string(text.substr(0, text.find(','))))) return;
    problems.push_back(
        {"--" + option, "must be another file than " + what + ", is \"" + path + "\""});
  };
  for (const std::string& word : line.words) refuse(word, "the input");
  for (const auto& [name, value] : line.options) {
    if (std::ranges::count(kOutputs, name) > 0) continue;
    const auto* const text = boost::any_cast<std::string>(&value.value());
    if (text != nullptr && name != option) refuse(*text, "that of --" + name);
  }
}

// The price of a chip has one name; others that people type are taken for it.
std::vector<std::string> with_usual_names(std::vector<std::string> arguments,
                                          const po::options_description& options) {
  constexpr std::array<std::string_view, 2> kOthers = {"--gpu-hour", "--price"};
  if (options.find_nothrow("chip-hour", false) == nullptr) return arguments;
  for (std::string& argument : arguments) {
    const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
    if (std::ranges::count(kOthers, name) > 0) argument.replace(0, name.size(), "--chip-hour");
  }
  return arguments;
}

}  // namespace

std::string CommandLine::value(const std::string& option) const {
  return options.count(option) == 0 ? "" : options[option].as<std::string>();
}

void require_names(const po::options_description& options) {
  for (const auto& option : options.options()) {
    if (option->long_name().empty()) throw std::bad_alloc();
  }
}

CommandLine read_command_line(const std::vector<std::string>& arguments,
                              const po::options_description& options,
                              std::vector<Problem>& problems) {
  require_names(options);
  po::options_description all;
  all.add(options).add_options()(kWords, po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add(kWords, -1);
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  names.insert(names.end(), {"--quiet", "--help"});
  CommandLine line;
  try {
    const int style = po::command_line_style::unix_style ^ po::command_line_style::allow_guessing;
    const po::parsed_options parsed = po::command_line_parser(with_usual_names(arguments, options))
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
  read_input_settings(line, problems);
  return line;
}

void add_json_option(po::options_description& options) {
  options.add_options()(
      "json", po::value<std::string>()->value_name("FILE"),
      "write the result as JSON; - writes it to standard output, and nothing else there");
}

void add_group_options(po::options_description& options) {
  options.add_options()("software", po::value<std::string>()->value_name("NAME|FILE[,KEYS]"),
                        "what runs it: torchtitan, nemo, .., or keys such as loss=separate; see "
                        "stepsim help software")(
      "pass", po::value<std::string>()->value_name("decode|prefill[,KEYS]"),
      "one pass of inference instead of a training step: decode,batch=64,context=8192");
}

void add_common_options(po::options_description& options) {
  options.add_options()("quiet", "show no progress")("help,h", "this text");
}

void add_input_option(po::options_description& options) {
  options.add_options()(
      kMaxInput, po::value<std::string>()->value_name("SIZE"),
      "read files of up to SIZE, also once they are decompressed (default: 16MiB; "
      "256MiB for tables and steps of algorithms, 1GiB for network cases)");
}

std::optional<std::int64_t> read_whole_number(const CommandLine& line, const std::string& option,
                                              std::int64_t low, std::int64_t high,
                                              std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  const auto number = number_in<std::int64_t>(text);
  if (number && *number >= low && *number <= high) return number;
  problems.push_back({"--" + option, "must be a whole number, " + std::to_string(low) + " to " +
                                         std::to_string(high) + ", is \"" + shortened(text) +
                                         "\""});
  return std::nullopt;
}

std::optional<double> read_positive(const CommandLine& line, const std::string& option, double most,
                                    std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  const auto value = number_in<double>(text);
  if (value && *value > 0 && *value <= most) return value;
  problems.push_back({"--" + option, "must be a number above 0 and at most " + write_double(most) +
                                         ", is \"" + shortened(text) + "\""});
  return std::nullopt;
}

std::size_t read_threads(const CommandLine& line, const std::string& option,
                         std::vector<Problem>& problems) {
  const auto threads = read_whole_number(line, option, 1, kMostThreads, problems);
  if (threads) return static_cast<std::size_t>(*threads);
  return started_processes() > 1 ? 1 : threads_of_machine();
}

std::string read_output_path(const CommandLine& line, const std::string& option,
                             OutputFormat format, std::vector<Problem>& problems) {
  const std::string path = line.value(option);
  if (line.options.count(option) == 0 || name_in_memory(path)) return path;
  if (path == "-") {
    if (format != OutputFormat::kJson) {
      problems.push_back({"--" + option, "must be a file, is \"-\""});
    }
    return path;
  }
  if (path.empty()) {
    problems.push_back({"--" + option, "must not be empty"});
    return path;
  }
  if (promises_another_format(path, format)) {
    problems.push_back(
        {"--" + option, "must end in " + either_of(suffixes_of(format)) + ", is \"" + path + "\""});
  }
  refuse_inputs(line, option, path, problems);
  if (is_file_of_standard_output(path)) {
    problems.push_back(
        {"--" + option, "must be another file than standard output goes to, is \"" + path + "\""});
  }
  for (const Problem& problem : check_writable(path)) {
    problems.push_back({"--" + option + " " + problem.field, problem.message});
  }
  return path;
}

void refuse_same_output(const CommandLine& line, const std::string& option,
                        const std::string& other, std::vector<Problem>& problems) {
  const std::string path = line.value(option);
  const std::string other_path = line.value(other);
  if (path.empty() || other_path.empty() || !is_same_output(path, other_path)) return;
  problems.push_back({"--" + other, "must be another file than --" + option + " (\"" + path +
                                        "\"), is \"" + other_path + "\""});
}

std::string read_output_folder(const CommandLine& line, const std::string& option,
                               std::vector<Problem>& problems) {
  const std::string folder = line.value(option);
  if (line.options.count(option) == 0) return folder;
  if (const std::string why = why_no_folder(folder); !why.empty()) {
    problems.push_back({"--" + option, why});
  }
  if (!problems.empty()) return folder;
  if (const std::string why = make_output_folder(folder); !why.empty()) {
    problems.push_back({"--" + option, why});
  }
  return folder;
}

}  // namespace stepsim
