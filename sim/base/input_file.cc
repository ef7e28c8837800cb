#include "sim/base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "sim/base/inflated_input.h"

namespace stepsim {
namespace {

using Clock = std::chrono::steady_clock;

// Several threads of a program that calls stepsim may set them at one time.
struct SharedSettings {
  std::atomic<std::int64_t> most_bytes = kKindsOwn;
  std::atomic<std::chrono::milliseconds> patience = InputSettings{}.patience;

  static constexpr std::int64_t kKindsOwn = -1;
};

SharedSettings& settings() {
  static SharedSettings one;
  return one;
}

// Returns why files of this type are not read; empty if they are.
std::string why_refused(mode_t mode) {
  if (S_ISREG(mode) || S_ISFIFO(mode)) return {};
  if (S_ISDIR(mode)) return "it is a folder";
  const char* const what = S_ISSOCK(mode) ? "socket" : "device";
  return std::string("it is a ") + what + "; only files and pipes are read";
}

std::string binary_size(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace

void set_input_settings(const InputSettings& wanted) {
  settings().most_bytes =
      wanted.most_bytes ? wanted.most_bytes->value() : SharedSettings::kKindsOwn;
  settings().patience = wanted.patience;
}

Bytes most_bytes(InputKind kind) {
  constexpr std::int64_t kMebi = 1 << 20;
  const std::int64_t most = settings().most_bytes;
  if (most != SharedSettings::kKindsOwn) return Bytes(most);
  switch (kind) {
    case InputKind::kText:
      return Bytes(16 * kMebi);
    case InputKind::kTable:
      return Bytes(256 * kMebi);
    case InputKind::kCase:
      break;
  }
  return Bytes(1024 * kMebi);
}

std::string too_long(InputKind kind, const std::string& what) {
  return "it " + what + " more than " + binary_size(most_bytes(kind).value()) +
         "; --max-input SIZE allows more";
}

InputFile::InputFile(const std::string& path, InputKind kind) : kind_(kind) {
  open(path);
}

InputFile::~InputFile() {
  if (descriptor_) close(*descriptor_);
}

// A pipe is opened without waiting for its writer.
void InputFile::open(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    problem_ = std::strerror(errno);
    return;
  }
  problem_ = why_refused(status.st_mode);
  if (!problem_.empty()) return;
  const int opened = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (opened < 0 || fstat(opened, &status) != 0) {
    problem_ = std::strerror(errno);
    if (opened >= 0) close(opened);
    return;
  }
  descriptor_ = opened;
  is_pipe_ = S_ISFIFO(status.st_mode);
  problem_ = why_refused(status.st_mode);  // it may be another file by now
  if (!is_pipe_ && status.st_size > most_bytes(kind_).value()) problem_ = too_long(kind_, "has");
}

std::size_t InputFile::read(std::span<char> block) {
  if (!problem_.empty() || block.empty()) return 0;
  const std::size_t size = at_ < kept_.size() ? read_kept(block) : read_descriptor(block);
  at_ += size;
  if (static_cast<std::int64_t>(at_) <= most_bytes(kind_).value()) return size;
  problem_ = too_long(kind_, "has");
  return 0;
}

std::size_t InputFile::read_kept(std::span<char> block) {
  const std::size_t size = std::min(block.size(), kept_.size() - at_);
  kept_.copy(block.data(), size, at_);
  return size;
}

std::size_t InputFile::read_descriptor(std::span<char> block) {
  while (!is_pipe_ || wait_for_pipe()) {
    const ssize_t count = ::read(*descriptor_, block.data(), block.size());
    if (count >= 0) {
      const auto size = static_cast<std::size_t>(count);
      if (is_pipe_) kept_.append(block.data(), size);
      return size;
    }
    if (errno == EINTR || errno == EAGAIN) continue;
    problem_ = std::strerror(errno);
    break;
  }
  return 0;
}

bool InputFile::wait_for_pipe() {
  constexpr std::chrono::milliseconds kSlice(100);
  while (waited_ < settings().patience.load()) {
    pollfd waited_for{.fd = *descriptor_, .events = POLLIN, .revents = 0};
    const Clock::time_point before = Clock::now();
    const int ready = poll(&waited_for, 1, static_cast<int>(kSlice.count()));
    waited_ += Clock::now() - before;
    if (ready > 0) return true;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(settings().patience.load());
  problem_ = "it is a pipe that kept stepsim waiting for more than " +
             std::to_string(seconds.count()) + " s";
  return false;
}

void InputFile::rewind() {
  if (!problem_.empty()) return;
  at_ = 0;
  if (!is_pipe_ && lseek(*descriptor_, 0, SEEK_SET) != 0) problem_ = std::strerror(errno);
}

TextOrProblem read_input(const std::string& path, InputKind kind) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  InputFile file(path, kind);
  InflatedInput input(file);
  std::string text;
  for (auto block = input.next(); !block.empty(); block = input.next()) {
    text.append(block.data(), block.size());
  }
  std::string problem = input.why_unreadable();
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    problem = "it is in UTF-16; save it as UTF-8";
  }
  if (!problem.empty()) return {.text = std::nullopt, .problem = std::move(problem)};
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return {.text = std::move(text), .problem = {}};
}

}  // namespace stepsim
