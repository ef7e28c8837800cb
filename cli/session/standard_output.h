// Writes a subcommand's answer to standard output, and what is wrong to standard error. In a
// session (cli/session/session.h) both are kept instead. Whatever strangers wrote into names and
// values passes shown_text() here, so a terminal obeys none of it.

#pragma once

#include <string_view>

#include "traces/files/output_file.h"

namespace stepsim {

// Nobody reads standard output any more, as in `stepsim catalog | head -1`.
struct NoReader : OutputError {
  using OutputError::OutputError;
};

// Writes all of `text`. Throws NoReader, or OutputError if that fails otherwise.
void print(std::string_view text);

// Writes `text` to standard error. Nothing can be said about a failure, so it is ignored.
void print_error(std::string_view text) noexcept;

// Replaces the last line of standard error, which is a terminal.
void redraw_error(std::string_view text);

// Gives standard input, output and error that the process was started without (`>&-`) something
// that can't be written to. Otherwise the next file that is opened would get their place, and what
// is printed. Call it before any file is opened.
void fill_closed_streams();

}  // namespace stepsim
