// The topics of `stepsim help` besides the subcommands, such as `stepsim help units`. A topic is
// one row of the table in help_topics.cc.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepsim {

struct HelpTopic {
  std::string_view name;
  std::string_view arguments;  // as in the overview: "[KEY]"; empty if it takes none
  std::string_view summary;    // a few words, for the overview
  // Returns the text for the words after the name of the topic. Throws ConfigError for words that
  // mean nothing here.
  std::string (*text)(std::span<const std::string> words);
};

std::span<const HelpTopic> help_topics();

}  // namespace stepsim
