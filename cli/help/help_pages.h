// What is made of the tables of subcommands and options beside help texts: man pages, and
// completions of bash and zsh. Packages install them (scripts/make_packages.sh).
//
//   stepsim help man run > stepsim-run.1
//   stepsim help completion bash > /etc/bash_completion.d/stepsim

#pragma once

#include <span>
#include <string>

namespace stepsim {

// The man page of stepsim, or of a subcommand that is named. Throws ConfigError for other words.
std::string man_page(std::span<const std::string> words);

// The completion for "bash" (also without a word) or "zsh": subcommands, options, the values of
// options that have a fixed set, and names of the catalog. Throws ConfigError for other words.
std::string completion(std::span<const std::string> words);

}  // namespace stepsim
