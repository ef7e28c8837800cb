// PartialFile is a file that is not finished. It lies beside its target under a name of its own,
// ".stepsim-0123456789abcdef.partial", until publish() gives it the target's name.
//
// An unfinished file is removed by whatever ends first: the destructor, remove_partial_files() of a
// process that is interrupted, or the next PartialFile in the same folder if the process died
// without a word (kill -9, a power cut). A writer holds a lock (flock) on its file, so the last of
// these never takes a file that somebody is writing. The kernel drops the lock of a dead process.

#pragma once

#include <cstdint>
#include <string>

#include "traces/files/file_descriptor.h"

namespace stepsim {

class PartialFile {
 public:
  // Throws std::system_error if no file can be made in the target's folder. The target itself may
  // not exist; its permissions are kept if it does.
  explicit PartialFile(const std::string& target);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  int descriptor() const { return file_.get(); }

  // Puts what was written on the disk. Throws std::system_error.
  void sync();

  // Replaces the target. Throws std::system_error. REQUIRES: sync() was the last call.
  void publish();

  // Puts the new name on the disk. Throws std::system_error. REQUIRES: publish() was called.
  void sync_folder() const;

 private:
  void create();
  bool try_create();
  bool is_there() const;
  void take_permissions_of_target();
  void remove() noexcept;

  FileDescriptor folder_;
  FileDescriptor file_;
  std::string target_;  // in the folder
  std::string name_;    // in the folder, until it is published
  bool is_published_ = false;
};

// Removes every unfinished file of this process. A signal handler may call it; the process must end
// after it.
void remove_partial_files() noexcept;

// Returns how many files of this process have been published. A signal handler may call it.
std::uint32_t published_files() noexcept;

}  // namespace stepsim
