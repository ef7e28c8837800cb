// Outputs writes what a command has found: to files, and to standard output. A failure of one loses
// none of the others. It is remembered, and end() says what could not be written.
//
//   Outputs outputs;
//   outputs.write(options.trace.path, [&](OutputFile& file) { write_trace(..., file); });
//   outputs.write(options.json, json);
//   outputs.commit();      // now the files appear, all at one time
//   outputs.print(report);
//   return outputs.end(ExitStatus::kDone);
//
// A path of "" (not asked for) or "-" (standard output) is no file, and nothing is written. In a
// session a text can also go to "memory:NAME" (cli/session/session.h).

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/subcommand.h"
#include "sim/base/error.h"
#include "traces/files/output_file.h"

namespace stepsim {

class Outputs {
 public:
  void write(const std::string& path, const std::function<void(OutputFile&)>& fill);
  void write(const std::string& path, std::string_view text);
  void commit();

  // Prints to standard output.
  void print(std::string_view text);
  // Returns whether all that was printed arrived.
  bool is_heard() const { return is_heard_; }

  // Returns `path` if it was asked for and has been written, else "".
  std::string if_written(const std::string& path) const;

  // Says what could not be written, and returns kNoOutput if there was anything, else `status`.
  ExitStatus end(ExitStatus status);

 private:
  template <typename Action>
  bool attempt(const std::string& name, Action action);

  std::vector<std::unique_ptr<OutputFile>> files_;  // not yet committed
  std::vector<std::string> written_;
  std::vector<Problem> failed_;
  bool is_heard_ = true;
  bool has_reader_ = true;
};

}  // namespace stepsim
