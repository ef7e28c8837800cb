// A file of the test's own folder, such as a table.

#pragma once

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace stepsim {

// Returns its path.
inline std::string write_table(const std::string& name, const std::string& text) {
  const std::filesystem::path path = temporary_folder() / name;
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace stepsim
