#include "cli/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "cli/session.h"
#include "traces/file_descriptor.h"

namespace stepsim {

void print(std::string_view text) {
  if (Session* const session = current_session()) {
    session->output += text;
    return;
  }
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return;
  const std::string reason =
      error == EBADF ? "it is closed" : std::generic_category().message(error);
  const Problem problem{"standard output", "can't be written: " + reason};
  if (error == EPIPE) throw NoReader(problem);
  throw OutputError(problem);
}

void print_error(std::string_view text) noexcept {
  if (Session* const session = current_session()) {
    try {
      session->errors += text;
    } catch (const std::exception&) {  // out of memory
    }
    return;
  }
  write_all(STDERR_FILENO, text);
}

// open() returns the lowest free number. Writing to what is open for reading only fails with EBADF,
// as writing to a closed stream does.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int mode = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", mode);
  }
}

}  // namespace stepsim
