#include "traces/files/file_descriptor.h"

#include <poll.h>

#include <cerrno>

namespace stepsim {
namespace {

// Another process that shares a pipe or a terminal may have set O_NONBLOCK on it. Then write()
// fails with EAGAIN, and is tried again when there is room.
void wait_until_writable(int descriptor) {
  pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
  poll(&waiting, 1, /*timeout, none=*/-1);
}

}  // namespace

int write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_until_writable(descriptor);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace stepsim
