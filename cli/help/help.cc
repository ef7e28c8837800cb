#include "cli/help/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <new>
#include <span>
#include <sstream>
#include <vector>

#include "cli/command_line.h"
#include "cli/help/help_topics.h"
#include "cli/session/standard_output.h"
#include "cli/subcommands.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr const char* kPurpose =
    "stepsim simulates training steps of large language models on clusters that need not exist.\n";

constexpr const char* kClosing = R"(
Each of them says more with --help or -h.
Try: stepsim run llama3-70b-dgx-h100-512

Exit status: 0 done; 1 the answer is no (--require-fit, validate, an order that never ends); 2 the
input is wrong; 3 stepsim has a bug, or too little memory; 4 an output could not be written, all
others were; 130 or 143 interrupted (SIGINT, SIGTERM; 129 SIGHUP, 131 SIGQUIT).
)";

struct OverviewLine {
  std::string form;
  std::string_view summary;
};

std::string joined(std::string_view name, std::string_view arguments) {
  return fmt::format("{}{}{}", name, arguments.empty() ? "" : " ", arguments);
}

std::string lines_text(const std::vector<OverviewLine>& lines) {
  std::size_t width = 0;
  for (const OverviewLine& line : lines) width = std::max(width, line.form.size());
  std::string text;
  for (const OverviewLine& line : lines) {
    text += fmt::format("  {:<{}}  {}\n", line.form, width, line.summary);
  }
  return text;
}

// Returns "NAME is one of:" and the names, as many to a line as fit.
std::string names_text(const Subcommand& subcommand) {
  if (subcommand.names == nullptr) return {};
  const std::string_view word =
      subcommand.arguments.substr(0, subcommand.arguments.find_first_of(" |"));
  ReportText text(false);
  text.blank();
  text.line("{} is one of:", word);
  text.wrapped(2, comma_separated(subcommand.names()));
  return text.text();
}

[[noreturn]] void refuse_word(const std::string& word) {
  std::vector<std::string> known;
  for (const Subcommand* subcommand : subcommands()) known.emplace_back(subcommand->name);
  for (const HelpTopic& topic : help_topics()) known.emplace_back(topic.name);
  throw ConfigError(
      {{word, "no such subcommand or topic" +
                  did_you_mean(word, known, "There are: " + comma_separated(known))}});
}

std::string text_on(std::span<const std::string> words) {
  if (words.empty()) return overview();
  for (const HelpTopic& topic : help_topics()) {
    if (topic.name == words[0]) return topic.text(words.subspan(1));
  }
  for (const Subcommand* subcommand : subcommands()) {
    if (subcommand->name != words[0]) continue;
    if (words.size() == 1) return help_text(*subcommand);
    throw ConfigError({{words[1], fmt::format("stepsim help {} takes no more words", words[0])}});
  }
  refuse_word(words[0]);
}

ExitStatus run_help_command(const std::vector<std::string>& arguments) {
  print(text_on(arguments));
  return ExitStatus::kDone;
}

}  // namespace

constinit const Subcommand kHelpSubcommand = {
    .name = "help",
    .arguments = "[SUBCOMMAND|TOPIC]",
    .summary = "explain a subcommand or a topic",
    .description = R"(stepsim help lists the subcommands and topics, and explains each.

Usage:
  stepsim help               every subcommand and topic
  stepsim help SUBCOMMAND    what it does, and its options; the same as stepsim SUBCOMMAND --help
  stepsim help TOPIC         an explanation
)",
    .options = nullptr,
    .run = run_help_command,
};

std::string overview() {
  std::vector<OverviewLine> commands;
  for (const Subcommand* one : subcommands()) {
    commands.push_back({"stepsim " + joined(one->name, one->arguments), one->summary});
  }
  commands.push_back({"stepsim --version", "print the version"});
  std::vector<OverviewLine> topics;
  for (const HelpTopic& topic : help_topics()) {
    topics.push_back({"stepsim help " + joined(topic.name, topic.arguments), topic.summary});
  }
  return std::string(kPurpose) + "\nUsage:\n" + lines_text(commands) + "\nTopics:\n" +
         lines_text(topics) + kClosing;
}

namespace {

std::string text_of(const OptionList& options) {
  require_names(options);
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // as when there is no memory
  text << options;
  return text.str();
}

}  // namespace

std::string help_text(const Subcommand& subcommand) {
  const std::string text = std::string(subcommand.description) + names_text(subcommand);
  if (subcommand.options == nullptr) return text;
  OptionList options = subcommand.options();
  add_common_options(options);
  const std::string lines = text_of(options);
  // Boost writes through streams of its own, which cut a line short where there is no memory.
  if (lines != text_of(options)) throw std::bad_alloc();
  return text + "\n" + lines + "\n";
}

}  // namespace stepsim
