// OutputFile is a file that exists in full or not at all. It is written beside its target under a
// name of its own (traces/files/partial_file.h), and commit() gives it the target's name once its
// bytes are on the disk. Without commit() nothing is left behind.
//
//   OutputFile file("out/run.trace.json.gz");
//   file.write(text);  // as often as needed
//   file.commit();
//
// A name that ends in ".gz" is compressed with gzip as it is written. The bytes depend only on what
// was written (the gzip header holds no time and no name). If the target exists and is no ordinary
// file, such as /dev/null or a pipe, it is written to directly. A symbolic link is followed, and if
// it leads to no file yet, that file is made.
//
// Any failure (no such folder, no permission, a full disk) throws OutputError. Not thread-safe.

#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// OutputError says that an output could not be written. what() is "PATH: can't be written: REASON".
struct OutputError : std::runtime_error {
  explicit OutputError(Problem why)
      : std::runtime_error(why.field + ": " + why.message), problem(std::move(why)) {}
  Problem problem;
};

class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  std::uint64_t written() const { return written_; }  // bytes so far, before compression

  // commit() in three parts, for several files that shall appear at one time. Each does first what
  // was left out before it; none does anything twice.
  void finish();   // puts everything that was written on the disk; nothing more can be written
  void publish();  // gives the file its name; quick after finish()
  void commit();   // puts the name on the disk

  const std::string& path() const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
  std::uint64_t written_ = 0;
};

// Tries to write `path` and returns why that fails; empty if it can be written now. Removes
// everything that it created. Call it before a long run. Throws OutputError if the name is fine but
// the disk is full or broken.
std::vector<Problem> check_writable(const std::string& path);

// Makes a folder that outputs go to, and those around it, where they are missing, and tries to
// write there. Returns what is wrong with it; "" if files can be written there now. Throws as
// check_writable() does.
std::string make_output_folder(const std::string& folder);

}  // namespace stepsim
