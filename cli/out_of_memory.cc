#include "cli/out_of_memory.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "cli/session/standard_output.h"
#include "cli/subcommand.h"
#include "traces/files/partial_file.h"

namespace stepsim {
namespace {

// No exception at all: there was no memory to make one.
bool is_out_of_memory() noexcept {
  if (!std::current_exception()) return true;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

void end_at_terminate() {
  if (!is_out_of_memory()) std::abort();
  remove_partial_files();
  print_out_of_memory();
  _exit(static_cast<int>(ExitStatus::kWrongProgram));
}

void catch_terminate() {
  std::set_terminate(end_at_terminate);
}

// The loader calls what stands in this section before it initialises any library.
__attribute__((section(".preinit_array"), used)) void (*const kFirst)() = catch_terminate;

}  // namespace

// An exception that passes through C code of the C library (std::call_once) makes it load libgcc's
// unwinder, and abort() if that takes more memory than there is. backtrace() loads it as well.
void prepare_for_exceptions() {
  void* frame = nullptr;
  backtrace(&frame, 1);
}

void print_out_of_memory() noexcept {
  print_error(
      "stepsim: out of memory\n"
      "  The machine, or a limit (ulimit -v, that of a container), gives no more. A smaller plan "
      "or\n"
      "  cluster needs less, and so do fewer --trace-ranks.\n");
}

}  // namespace stepsim
