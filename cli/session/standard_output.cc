#include "cli/session/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "cli/session/progress.h"
#include "cli/session/session.h"
#include "sim/base/shown_text.h"
#include "traces/files/file_descriptor.h"

namespace stepsim {

void print(std::string_view text) {
  const std::string shown = shown_text(text, shows_color(STDOUT_FILENO));
  if (Session* const session = current_session()) {
    session->output += shown;
    return;
  }
  const int error = write_all(STDOUT_FILENO, shown);
  if (error == 0) return;
  const std::string reason =
      error == EBADF ? "it is closed" : std::generic_category().message(error);
  const Problem problem{"standard output", "can't be written: " + reason};
  if (error == EPIPE) throw NoReader(problem);
  throw OutputError(problem);
}

void print_error(std::string_view text) noexcept {
  Session* const session = current_session();
  if (session == nullptr && is_plainly_shown(text)) {  // as where memory has run out
    write_all(STDERR_FILENO, text);
    return;
  }
  try {
    const std::string shown = shown_text(text);
    if (session != nullptr) session->errors += shown;
    if (session == nullptr) write_all(STDERR_FILENO, shown);
  } catch (const std::exception&) {  // out of memory
  }
}

void redraw_error(std::string_view text) {
  write_all(STDERR_FILENO, "\r\033[K" + shown_text(text));
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
