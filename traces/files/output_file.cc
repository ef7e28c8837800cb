#include "traces/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "traces/files/file_descriptor.h"
#include "traces/files/gzip_stream.h"
#include "traces/files/output_place.h"
#include "traces/files/partial_file.h"

namespace stepsim {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

Problem cannot_write(const std::string& path, const std::string& reason) {
  return {path, "can't be written: " + reason};
}

bool is_the_disks_fault(const std::error_code& error) {
  const auto is = [&](int code) { return error == std::error_code(code, std::generic_category()); };
  return is(ENOSPC) || is(EDQUOT) || is(EIO);
}

}  // namespace

class OutputFile::Writer {
 public:
  explicit Writer(std::string path) : path_(std::move(path)) {
    if (const std::string trouble = trouble_with_place(path_); !trouble.empty()) {
      throw OutputError(cannot_write(path_, trouble));
    }
    saying_why([this] { open(); });
    if (path_.ends_with(".gz")) gzip_.emplace();
  }

  const std::string& path() const { return path_; }

  void write(std::string_view text) {
    assert(!is_finished_);
    pending_.append(text);
    if (pending_.size() >= kChunk) drain(false);
  }

  void finish() {
    if (std::exchange(is_finished_, true)) return;
    drain(true);
    if (partial_) saying_why([this] { partial_->sync(); });
  }

  void publish() {
    finish();
    if (std::exchange(is_published_, true)) return;
    if (partial_) saying_why([this] { partial_->publish(); });
  }

  void commit() {
    publish();
    saying_why([this] {
      if (partial_) partial_->sync_folder();
      if (!partial_) check(special_.close() == 0 ? 0 : errno);
    });
  }

 private:
  // Runs `action`. A failure of the system becomes an OutputError with the name of this file.
  template <typename Action>
  void saying_why(Action action) const {
    try {
      action();
    } catch (const std::system_error& error) {
      throw OutputError(cannot_write(path_, error.code().message()));
    }
  }

  static void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category());
  }

  void open() {
    if (is_special(path_)) {
      special_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      check(special_.is_open() ? 0 : errno);
    } else {
      partial_.emplace(followed(path_));
    }
  }

  // Writes the pending bytes. `last` also ends the gzip stream.
  void drain(bool last) {
    const auto pass_on = [this](std::string_view bytes) { write_through(bytes); };
    if (gzip_) {
      gzip_->compress(pending_, last, pass_on);
    } else {
      pass_on(pending_);
    }
    pending_.clear();
  }

  void write_through(std::string_view bytes) {
    saying_why(
        [&] { check(write_all(partial_ ? partial_->descriptor() : special_.get(), bytes)); });
  }

  std::string path_;                    // as the user wrote it
  std::optional<PartialFile> partial_;  // an ordinary file; otherwise special_ is open
  FileDescriptor special_;
  std::string pending_;
  std::optional<GzipStream> gzip_;
  bool is_finished_ = false;
  bool is_published_ = false;
};

OutputFile::OutputFile(std::string path) : writer_(std::make_unique<Writer>(std::move(path))) {}
OutputFile::~OutputFile() = default;
void OutputFile::write(std::string_view text) {
  writer_->write(text);
  written_ += text.size();
}
void OutputFile::finish() {
  writer_->finish();
}
void OutputFile::publish() {
  writer_->publish();
}
void OutputFile::commit() {
  writer_->commit();
}
const std::string& OutputFile::path() const {
  return writer_->path();
}

std::vector<Problem> check_writable(const std::string& path) {
  if (const std::string trouble = trouble_with_place(path); !trouble.empty()) {
    return {cannot_write(path, trouble)};
  }
  if (is_special(path)) {  // opening a pipe would wait for its reader
    if (::access(path.c_str(), W_OK) == 0) return {};
    return {cannot_write(path, reason_of(errno))};
  }
  try {
    const PartialFile probe(followed(path));
    return {};
  } catch (const std::system_error& error) {
    const Problem problem = cannot_write(path, error.code().message());
    if (is_the_disks_fault(error.code())) throw OutputError(problem);
    return {problem};
  }
}

std::string make_output_folder(const std::string& folder) {
  std::error_code error;
  std::error_code ignored;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder, ignored)) {
    return "\"" + folder + "\" is no folder and can't be made one" +
           (error ? ": " + error.message() : "");
  }
  const std::vector<Problem> problems = check_writable(folder + "/any.svg");
  return problems.empty() ? "" : "\"" + folder + "\": " + problems.front().message;
}

}  // namespace stepsim
