// InputFile reads a file that a person named: a regular file, or a pipe that delivers in time. All
// files that come from users are read here, so that no device, endless pipe or gigantic file can
// stop stepsim or fill the memory.
//
//   const TextOrProblem read = read_input(path, InputKind::kText);
//   if (!read.text) problems.push_back({path, "can't be read: " + read.problem});
//
// read_input() takes what gzip has compressed (sim/base/inflated_input.h) as the text in it, so
// what
// `--json F.json.gz` writes is read back everywhere, and leaves out the mark that some editors put
// before a text in UTF-8. A text in UTF-16 is a problem.
//
// Folders, devices and sockets are refused before they are opened. A file has a limit of bytes that
// depends on its kind; --max-input replaces it. A pipe may make stepsim wait for 10 s in all.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "sim/base/units.h"

namespace stepsim {

enum class InputKind {
  kText,   // experiments and their parts, config.json, schedules: 16 MiB
  kTable,  // tables of numbers: CSV, byte matrices, steps of algorithms: 256 MiB
  kCase,   // network cases: 1 GiB, also once they are decompressed
};

// InputSettings hold for the whole process. The command line sets them before it reads a file.
struct InputSettings {
  std::optional<Bytes> most_bytes{};           // of any kind of file; unset: the kind's own limit
  std::chrono::milliseconds patience{10'000};  // with a pipe, in all
};
void set_input_settings(const InputSettings& settings);

// Returns the limit in force, and what to say of a file that exceeds it: "it has more than 16 MiB;
// --max-input SIZE allows more". `what` is "has", or "decompresses to".
Bytes most_bytes(InputKind kind);
std::string too_long(InputKind kind, const std::string& what);

class InputFile {
 public:
  // Opens the file. problem() says whether that failed.
  InputFile(const std::string& path, InputKind kind);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Reads the next bytes, at most as many as fit into the block. Returns their number: 0 at the end
  // of the file and after a problem.
  std::size_t read(std::span<char> block);

  // Goes back to the first byte. What came from a pipe is kept in memory for that.
  void rewind();

  InputKind kind() const { return kind_; }

  // Returns why the file can't be read, such as "it is a folder"; empty if there is no problem.
  const std::string& problem() const { return problem_; }

 private:
  void open(const std::string& path);
  bool wait_for_pipe();
  std::size_t read_descriptor(std::span<char> block);
  std::size_t read_kept(std::span<char> block);

  const InputKind kind_;
  std::optional<int> descriptor_;
  bool is_pipe_ = false;
  std::chrono::steady_clock::duration waited_{};  // for the pipe
  std::string kept_;                              // bytes of a pipe
  std::size_t at_ = 0;                            // the next byte
  std::string problem_;
};

struct TextOrProblem {
  std::optional<std::string> text;
  std::string problem;
};
TextOrProblem read_input(const std::string& path, InputKind kind);

}  // namespace stepsim
