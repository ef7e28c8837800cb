// OutputFile is a file that is there in full or not at all: it is written beside its target under
// a temporary name and renamed by commit(). Without commit() nothing is left behind.
//
//   OutputFile file("out/run.trace.json.gz");
//   file.write(text);  // as often as needed
//   file.commit();
//
// A name that ends in ".gz" is compressed with gzip as it is written; the bytes depend only on what
// was written (the gzip header holds no time and no name). A target that exists and is no ordinary
// file, such as /dev/null or a pipe, is written to directly. A symbolic link is followed.
//
// Whatever goes wrong (no such folder, no permission, a full disk) is an OutputError. Not
// thread-safe.

#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// An output could not be written. what() is "PATH: can't be written: REASON".
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

// Why `path` could not be written, found out by trying (what was created is removed again). For
// asking before a long run. Empty when it can be written now.
std::vector<Problem> check_writable(const std::string& path);

}  // namespace stepsim
