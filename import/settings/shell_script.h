// Reads the commands of a shell script, as far as scripts that start trainers go: assignments,
// arrays, quotes, ${NAME:-default}, $((2 * N)), conditions that compare texts, heredocs. Nothing is
// run.
//
//   const ShellScript script = read_shell_script(text, {{"NUM_NODES", "16"}}, problems);
//   for (const ShellCommand& command : script.commands) ...   // words with their lines
//
// What a script takes from outside (its arguments, its environment, the output of commands) is not
// known: ${NAME} then stays in a word as it is written, and counts as empty in conditions.
// Conditions that ask for files or commands count as false. Of loops and functions each command is
// read once.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

struct ShellWord {
  std::string text;
  std::size_t line = 0;
};

struct ShellCommand {
  std::vector<ShellWord> words;
};

struct ShellScript {
  std::vector<ShellCommand> commands;  // those that would run, in order
  // Words of variables and arrays, in the order in which they were first assigned.
  std::vector<std::pair<std::string, std::vector<ShellWord>>> variables;
};

// `given` variables keep their values, whatever the script assigns. A script whose variables
// multiply beyond 200,000 words or 16 MiB is a problem of `file`.
ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const std::map<std::string, std::string>& given,
                              std::vector<Problem>& problems);

// Cuts a text at blanks and line ends. `line`: of its first character.
std::vector<ShellWord> words_with_lines(std::string_view text, std::size_t line);

}  // namespace stepsim
