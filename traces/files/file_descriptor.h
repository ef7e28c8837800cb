// FileDescriptor closes what it holds. write_all() writes to a descriptor whatever its kind.

#pragma once

#include <unistd.h>

#include <string_view>
#include <utility>

namespace stepsim {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, kNone)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  bool is_open() const { return descriptor_ != kNone; }
  int get() const { return descriptor_; }

  // Returns what close() returns; 0 if nothing is open.
  int close() { return is_open() ? ::close(std::exchange(descriptor_, kNone)) : 0; }

 private:
  static constexpr int kNone = -1;  // as open() reports a failure
  int descriptor_ = kNone;
};

// Writes all of `bytes`, and waits where the other end is slow. Returns 0, or the errno of a
// failure. Never throws.
int write_all(int descriptor, std::string_view bytes) noexcept;

}  // namespace stepsim
