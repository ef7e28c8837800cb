// OutputFile is a file that exists in full or not at all. It is written beside its target under a
// temporary name, and commit() renames it. Without commit() nothing is left behind.
//
//   OutputFile file("out/run.trace.json.gz");
//   file.write(text);  // as often as needed
//   file.commit();
//
// A name that ends in ".gz" is compressed with gzip as it is written. The bytes depend only on what
// was written (the gzip header holds no time and no name). If the target exists and is no ordinary
// file, such as /dev/null or a pipe, it is written to directly. A symbolic link is followed.
//
// Any failure (no such folder, no permission, a full disk) throws OutputError. Not thread-safe.

#pragma once

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
  void commit();  // REQUIRES: called at most once, and no write() after it

  const std::string& path() const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

// Tries to write `path` and returns why that fails; empty if it can be written now. Removes
// everything that it created. Call it before a long run.
std::vector<Problem> check_writable(const std::string& path);

}  // namespace stepsim
