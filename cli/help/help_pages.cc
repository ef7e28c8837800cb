#include "cli/help/help_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/help/help.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "import/importer.h"
#include "proto/catalog/catalog.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// An option as a page shows it.
struct ListedOption {
  std::string name;   // "json"
  std::string value;  // "FILE"; empty: it takes none
  std::string help;
};

std::vector<ListedOption> listed_options(const Subcommand& subcommand) {
  std::vector<ListedOption> listed;
  if (subcommand.options != nullptr) {
    const OptionList options = subcommand.options();
    require_names(options);
    for (const auto& option : options.options()) {
      const bool takes_value = option->semantic()->max_tokens() > 0;
      listed.push_back({option->long_name(), takes_value ? option->semantic()->name() : "",
                        option->description()});
    }
  }
  listed.push_back({"quiet", "", "show no progress"});
  listed.push_back({"help", "", "this text"});
  return listed;
}

bool is_small_word(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

// Returns the values of an option: the words of "pipelined|stepped", names of the catalog, or none
// where it takes other texts, such as files.
std::vector<std::string> values_of(const ListedOption& option) {
  for (const CatalogKind kind : {CatalogKind::kModel, CatalogKind::kCluster, CatalogKind::kChip,
                                 CatalogKind::kLibrary, CatalogKind::kFailures}) {
    if (option.name == one_of(kind)) return list(kind);
  }
  std::vector<std::string> values;
  std::string_view rest = option.value;
  while (true) {
    const std::size_t bar = rest.find('|');
    const std::string_view word = rest.substr(0, bar);
    if (!is_small_word(word)) return {};
    values.emplace_back(word);
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
  }
  return values.size() > 1 ? values : std::vector<std::string>{};
}

// Returns what may stand as the first word behind a subcommand, as far as tables know it.
std::vector<std::string> completed_words(const Subcommand& subcommand) {
  if (subcommand.names != nullptr) return subcommand.names();
  const bool is_of_experiment = subcommand.arguments.starts_with("EXPERIMENT");
  if (is_of_experiment) return list(CatalogKind::kExperiment);
  if (subcommand.arguments.starts_with("CLUSTER")) return list(CatalogKind::kCluster);
  std::vector<std::string> words;
  if (&subcommand == &kHelpSubcommand) {
    for (const Subcommand* one : subcommands()) words.emplace_back(one->name);
  }
  if (subcommand.name == "import") {
    for (const Importer& one : importers()) words.emplace_back(one.kind);
  }
  if (subcommand.name == "catalog") {
    for (const CatalogKind kind : kCatalogKinds) words.emplace_back(name_of(kind));
  }
  return words;
}

// ---- man ----

// A line of a page as it is: no dots or quotes at its start, no escapes in it.
std::string man_text(std::string_view text) {
  std::string escaped;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    begins_line = c == '\n';
  }
  return escaped;
}

std::string man_head(std::string_view title, std::string_view name, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"stepsim {}\" \"stepsim\"\n.ad l\n.SH NAME\n{} \\- {}\n",
                     title, version(), man_text(name), man_text(summary));
}

std::string as_it_is(std::string_view text) {
  return fmt::format(".nf\n{}\n.fi\n", man_text(text.substr(0, text.find_last_not_of('\n') + 1)));
}

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  for (char& c : capitals) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return capitals;
}

std::string main_page() {
  std::string text = man_head("STEPSIM", "stepsim",
                              "simulate training and serving of large language models on clusters");
  text += ".SH DESCRIPTION\n" + as_it_is(overview()) + ".SH SEE ALSO\n";
  std::string pages;
  for (const Subcommand* one : subcommands()) {
    pages +=
        fmt::format("{}\\fBstepsim\\-{}\\fR(1)", pages.empty() ? "" : ",\n", man_text(one->name));
  }
  return text + pages + "\n";
}

std::string page_of(const Subcommand& subcommand) {
  std::string text = man_head(in_capitals(fmt::format("stepsim-{}", subcommand.name)),
                              fmt::format("stepsim-{}", subcommand.name), subcommand.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fBstepsim {}\\fR {}\n.SH DESCRIPTION\n{}",
                      man_text(subcommand.name), man_text(subcommand.arguments),
                      as_it_is(subcommand.description));
  text += ".SH OPTIONS\n";
  for (const ListedOption& option : listed_options(subcommand)) {
    text += fmt::format(".TP\n\\fB\\-\\-{}\\fR{}\n{}\n", man_text(option.name),
                        option.value.empty() ? "" : " \\fI" + man_text(option.value) + "\\fR",
                        man_text(option.help));
  }
  return text + ".SH SEE ALSO\n\\fBstepsim\\fR(1)\n";
}

// ---- bash ----

std::string words_text(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_case(const Subcommand& subcommand) {
  std::vector<std::string> flags;
  std::string values;
  for (const ListedOption& option : listed_options(subcommand)) {
    flags.push_back("--" + option.name);
    if (const std::vector<std::string> known = values_of(option); !known.empty()) {
      values += fmt::format("        --{}) words=\"{}\" ;;\n", option.name, words_text(known));
    } else if (!option.value.empty()) {
      values += fmt::format("        --{}) words= ;;\n", option.name);
    }
  }
  return fmt::format(
      "    {})\n      case \"$previous\" in\n{}        *) words=\"{} {}\" ;;\n      esac\n      "
      ";;\n",
      subcommand.name, values, words_text(flags), words_text(completed_words(subcommand)));
}

std::string bash_completion() {
  std::vector<std::string> names;
  std::string cases;
  for (const Subcommand* one : subcommands()) {
    names.emplace_back(one->name);
    cases += bash_case(*one);
  }
  return fmt::format(
      R"(# Completion of stepsim {0} for bash, made by `stepsim help completion bash`.
_stepsim() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=
  if [[ $word == = ]]; then  # --option=
    word=
  elif [[ $previous == = ]]; then  # --option=beginning
    previous="${{COMP_WORDS[COMP_CWORD-2]}}"
  fi
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{1} --version --help" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ "$word" == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _stepsim stepsim
)",
      version(), words_text(names), cases);
}

// ---- zsh ----

// In single quotes, and without what _arguments reads in its help.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_case(const Subcommand& subcommand) {
  std::string text = fmt::format("    {})\n      _arguments", subcommand.name);
  for (const ListedOption& option : listed_options(subcommand)) {
    const bool takes_value = !option.value.empty();  // behind "=" or as the next word
    text += fmt::format(" \\\n        '*--{}{}[{}]", option.name, takes_value ? "=" : "",
                        zsh_text(option.help));
    if (takes_value) {
      const std::vector<std::string> known = values_of(option);
      text += fmt::format(":{}:{}", zsh_text(option.value),
                          known.empty() ? "_files" : "(" + words_text(known) + ")");
    }
    text += "'";
  }
  const std::vector<std::string> words = completed_words(subcommand);
  text += words.empty() ? " \\\n        '*:file:_files'"
                        : fmt::format(" \\\n        '1:{}:({})' '*:file:_files'",
                                      zsh_text(subcommand.name), words_text(words));
  return text + "\n      ;;\n";
}

std::string zsh_completion() {
  std::string names;
  std::string cases;
  for (const Subcommand* one : subcommands()) {
    names += fmt::format("    '{}:{}'\n", one->name, zsh_text(one->summary));
    cases += zsh_case(*one);
  }
  return fmt::format(
      R"(#compdef stepsim
# Completion of stepsim {0} for zsh, made by `stepsim help completion zsh`.
_stepsim() {{
  local -a subcommands
  subcommands=(
{1}  )
  if (( CURRENT == 2 )); then
    _describe subcommand subcommands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
{2}  esac
}}
if [[ "$funcstack[1]" == _stepsim ]]; then
  _stepsim "$@"
else
  compdef _stepsim stepsim
fi
)",
      version(), names, cases);
}

}  // namespace

std::string man_page(std::span<const std::string> words) {
  if (words.empty()) return main_page();
  if (words.size() > 1) {
    throw ConfigError({{words[1], "stepsim help man takes at most one subcommand"}});
  }
  return page_of(find_subcommand(words[0]));
}

std::string completion(std::span<const std::string> words) {
  if (words.empty() || (words.size() == 1 && words[0] == "bash")) return bash_completion();
  if (words.size() == 1 && words[0] == "zsh") return zsh_completion();
  const std::string& word = words.size() > 1 ? words[1] : words[0];
  throw ConfigError({{word, "stepsim help completion takes one shell: bash or zsh"}});
}

}  // namespace stepsim
