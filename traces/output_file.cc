#include "traces/output_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

namespace stepsim {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

// Traces are so repetitive that higher levels cost time and gain little.
constexpr int kCompressionLevel = 3;
constexpr int kGzip = 15 + 16;  // zlib: largest window, gzip header and trailer
constexpr int kMemoryLevel = 9;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw OutputError({path, "can't be written: " + reason});
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// Returns the file that `path` leads to through symbolic links.
std::string resolve(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

bool is_special(const std::string& target) {
  std::error_code error;
  const auto status = std::filesystem::status(target, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// Returns why a file cannot be made at `path`, as far as its folder tells; "" if nothing is wrong.
std::string trouble_with_place(const std::string& path) {
  if (path.empty()) return "the name is empty";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return "it is a folder";
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
  const bool exists = std::filesystem::exists(std::filesystem::symlink_status(folder, error));
  return (exists ? "not a folder: " : "no such folder: ") + folder.string();
}

}  // namespace

class OutputFile::Writer {
 public:
  explicit Writer(std::string path) : path_(std::move(path)), target_(resolve(path_)) {
    open();
    if (!path_.ends_with(".gz")) return;
    deflate_.emplace();
    if (deflateInit2(&*deflate_, kCompressionLevel, Z_DEFLATED, kGzip, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      deflate_.reset();
      abandon();
      fail(path_, "not enough memory to compress it");
    }
    compressed_.resize(kChunk);
  }

  ~Writer() {
    abandon();
    if (deflate_) deflateEnd(&*deflate_);
  }

  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  const std::string& path() const { return path_; }

  void write(std::string_view text) {
    assert(file_ >= 0);
    pending_.append(text);
    if (pending_.size() >= kChunk) drain(false);
  }

  void commit() {
    assert(file_ >= 0);
    drain(true);
    const int closed = ::close(std::exchange(file_, -1));
    if (closed != 0) give_up(errno);
    if (temporary_.empty()) return;
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) give_up(errno);
    temporary_.clear();
  }

 private:
  void open() {
    if (const std::string trouble = trouble_with_place(path_); !trouble.empty()) {
      fail(path_, trouble);
    }
    if (is_special(target_)) {
      file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
      // Another process may be writing the same target, so each uses a name of its own.
      for (int attempt = 0; attempt < 100; ++attempt) {
        temporary_ =
            target_ + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
        file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file_ >= 0 || errno != EEXIST) break;
      }
    }
    if (file_ < 0) {
      const int error = errno;
      temporary_.clear();  // the existing file of that name is not ours
      fail(path_, reason_of(error));
    }
  }

  // Writes the pending bytes. `last` also ends the gzip stream.
  void drain(bool last) {
    if (!deflate_) {
      write_through(pending_);
      pending_.clear();
      return;
    }
    // zlib never writes to next_in; its interface is just older than const.
    deflate_->next_in = reinterpret_cast<Bytef*>(pending_.data());
    assert(pending_.size() <= std::numeric_limits<uInt>::max());
    deflate_->avail_in = static_cast<uInt>(pending_.size());
    do {
      deflate_->next_out = reinterpret_cast<Bytef*>(compressed_.data());
      deflate_->avail_out = static_cast<uInt>(compressed_.size());
      deflate(&*deflate_, last ? Z_FINISH : Z_NO_FLUSH);
      write_through({compressed_.data(), compressed_.size() - deflate_->avail_out});
    } while (deflate_->avail_out == 0);
    pending_.clear();
  }

  void write_through(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) give_up(errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  [[noreturn]] void give_up(int error) {
    abandon();
    fail(path_, reason_of(error));
  }

  // Closes and removes a file that was not committed.
  void abandon() {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  std::string path_;       // as the user wrote it
  std::string target_;     // symbolic links followed
  std::string temporary_;  // empty: the target itself is open
  int file_ = -1;
  std::string pending_;
  std::optional<z_stream> deflate_;  // unset: not compressed
  std::vector<char> compressed_;
};

OutputFile::OutputFile(std::string path) : writer_(std::make_unique<Writer>(std::move(path))) {}
OutputFile::~OutputFile() = default;
void OutputFile::write(std::string_view text) {
  writer_->write(text);
}
void OutputFile::commit() {
  writer_->commit();
}
const std::string& OutputFile::path() const {
  return writer_->path();
}

std::vector<Problem> check_writable(const std::string& path) {
  if (const std::string target = resolve(path); is_special(target)) {
    // Opening a pipe would wait for its reader.
    if (std::filesystem::is_directory(target)) return {{path, "can't be written: it is a folder"}};
    if (::access(target.c_str(), W_OK) == 0) return {};
    return {{path, "can't be written: " + reason_of(errno)}};
  }
  try {
    const OutputFile probe(path);
    return {};
  } catch (const OutputError& error) {
    return {error.problem};
  }
}

}  // namespace stepsim
