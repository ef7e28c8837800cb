#include "cli/session/interrupts.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "cli/session/session.h"
#include "sim/base/shown_text.h"
#include "traces/files/partial_file.h"

namespace stepsim {
namespace {

constexpr int kInterrupts[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// A signal may come at any time: the bytes are in place before their number is.
std::array<char, 500> words_of_work;
std::atomic<std::size_t> size_of_words = 0;
static_assert(std::atomic<std::size_t>::is_always_lock_free);

constexpr int kNotRemembered = -1;
std::atomic<int> remembered = kNotRemembered;  // 0: the next one is
static_assert(std::atomic<int>::is_always_lock_free);

sigset_t all_interrupts() {
  sigset_t all;
  sigemptyset(&all);
  for (const int signal : kInterrupts) sigaddset(&all, signal);
  return all;
}

// ---- inside the signal handler: only what POSIX calls async-signal-safe ----

// A terminal that was stopped (Ctrl-S) must not keep the process from ending.
void say(std::string_view text) {
  pollfd standard_error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&standard_error, 1, /*timeout=*/0) != 1) return;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

void end_at_once(int signal) {
  int none = 0;
  if (remembered.compare_exchange_strong(none, signal)) return;
  remove_partial_files();
  if (isatty(STDERR_FILENO) != 0) say("\r\033[K");  // the line of Progress
  if (const std::size_t size = size_of_words; size > 0) {
    say("stepsim: interrupted; ");
    say({words_of_work.data(), size});
    say("\n");
  } else {
    say(published_files() == 0
            ? "stepsim: interrupted, nothing was written\n"
            : "stepsim: interrupted; files that were written before are complete\n");
  }
  _exit(128 + signal);
}

// ----

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = end_at_once;
  action.sa_mask = all_interrupts();
  for (const int signal : kInterrupts) {
    if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

void set_interrupt_words(std::string_view words) {
  if (current_session() != nullptr) return;  // the caller ends, not the process
  size_of_words = 0;
  const std::string shown = shown_text(words);
  const std::size_t size = std::min(shown.size(), words_of_work.size());
  std::copy_n(shown.begin(), size, words_of_work.begin());
  size_of_words = size;
}

RememberedInterrupt::~RememberedInterrupt() {
  remembered = kNotRemembered;
}

void RememberedInterrupt::begin() {
  int none = kNotRemembered;
  remembered.compare_exchange_strong(none, 0);
}

int RememberedInterrupt::signal() const {
  return std::max(remembered.load(), 0);
}

HeldInterrupts::HeldInterrupts() {
  const sigset_t all = all_interrupts();
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

HeldInterrupts::~HeldInterrupts() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace stepsim
