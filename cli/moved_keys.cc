#include "cli/moved_keys.h"

#include <fmt/format.h>

#include <cstdio>

#include "proto/key_groups_of_files.h"
#include "sim/base/shown_text.h"

namespace stepsim {

void say_moved_keys(const std::string& file, const std::vector<std::string>& moved) {
  if (moved.empty()) return;
  std::string text;
  for (const std::string& path : moved) {
    const std::string key = path.substr(path.find('.') + 1);
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", path,
                        key == "software" ? "software.catalog" : path_of_key(key));
  }
  fmt::print(stderr, "stepsim: {} is of 0.1, and is read until 2.0: {}\n", shown_text(file), text);
}

}  // namespace stepsim
