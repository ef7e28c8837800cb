#include "cli/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "traces/output_file.h"

namespace stepsim {

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw OutputError(
        {"standard output", std::string("can't be written: ") + std::strerror(errno)});
  }
}

}  // namespace stepsim
