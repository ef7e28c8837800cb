#include "traces/files/partial_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string_view>
#include <system_error>

namespace stepsim {
namespace {

constexpr std::string_view kPrefix = ".stepsim-";
constexpr std::string_view kSuffix = ".partial";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kNameSize = kPrefix.size() + kDigits + kSuffix.size();

[[noreturn]] void fail(int error) {
  throw std::system_error(error, std::generic_category());
}

std::string new_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{}", kPrefix, random(), random(), kSuffix);
}

bool is_partial_name(std::string_view name) {
  return name.size() == kNameSize && name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

// ---- the files that a signal handler removes ----

enum class EntryState : std::uint8_t { kFree, kFilling, kListed };

struct Entry {
  std::atomic<EntryState> state = EntryState::kFree;
  int folder = 0;
  std::array<char, kNameSize + 1> name{};
};
static_assert(std::atomic<EntryState>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

// A signal handler can reach nothing but globals. Commands write one or two files at a time; one
// that finds no free entry is removed by the next writer in its folder.
constinit std::array<Entry, 64> entries;
constinit std::atomic<std::uint32_t> published = 0;

void add_entry(int folder, const std::string& name) {
  assert(name.size() == kNameSize);
  for (Entry& entry : entries) {
    EntryState expected = EntryState::kFree;
    if (!entry.state.compare_exchange_strong(expected, EntryState::kFilling)) continue;
    entry.folder = folder;
    std::ranges::copy(name, entry.name.begin());
    entry.state = EntryState::kListed;
    return;
  }
}

Entry* entry_of(std::string_view name) noexcept {
  for (Entry& entry : entries) {
    if (entry.state == EntryState::kListed && name == entry.name.data()) return &entry;
  }
  return nullptr;
}

void remove_entry(const std::string& name) noexcept {
  if (Entry* const entry = entry_of(name)) entry->state = EntryState::kFree;
}

// ---- the files of dead processes ----

bool is_same_file(int file, int folder, const char* name) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file, &open) == 0 && ::fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(open.st_mode) && open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Where files can't be locked, no file is ever taken for a left one. One of this process never is:
// its lock may have failed.
void remove_if_left(int folder, const char* name) {
  const FileDescriptor file(::openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (is_same_file(file.get(), folder, name)) ::unlinkat(folder, name, 0);
}

void remove_left_files(int folder) {
  const int listed = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  const auto end = [](DIR* list) { ::closedir(list); };
  const std::unique_ptr<DIR, decltype(end)> list(::fdopendir(listed), end);
  if (!list) return;
  while (const dirent* entry = ::readdir(list.get())) {
    if (is_partial_name(entry->d_name) && !entry_of(entry->d_name))
      remove_if_left(folder, entry->d_name);
  }
}

// Some devices and file systems have nothing to put on a disk.
bool matters(int sync_error) {
  return sync_error != EINVAL && sync_error != ENOTSUP && sync_error != EROFS;
}

void sync_to_disk(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    if (matters(errno)) fail(errno);
    return;
  }
}

}  // namespace

PartialFile::PartialFile(const std::string& target)
    : target_(std::filesystem::path(target).filename().string()) {
  const std::string parent = std::filesystem::path(target).parent_path().string();
  folder_ = FileDescriptor(
      ::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) fail(errno);
  remove_left_files(folder_.get());
  create();
  take_permissions_of_target();
}

PartialFile::~PartialFile() {
  if (!is_published_) remove();
}

// A process that looks for left files may take a new one before it is locked.
void PartialFile::create() {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (try_create()) return;
  }
  fail(EEXIST);
}

bool PartialFile::try_create() {
  name_ = new_name();
  add_entry(folder_.get(), name_);  // before it exists: a signal may come at any time
  file_ = FileDescriptor(
      ::openat(folder_.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_.is_open()) {
    const int error = errno;
    remove_entry(name_);
    if (error == EEXIST) return false;
    fail(error);
  }
  const bool is_taken = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!is_taken && is_there()) return true;
  remove();
  return false;
}

bool PartialFile::is_there() const {
  return is_same_file(file_.get(), folder_.get(), name_.c_str());
}

// A result that only its owner may read stays so when it is written again.
void PartialFile::take_permissions_of_target() {
  struct stat old {};
  if (::fstatat(folder_.get(), target_.c_str(), &old, 0) != 0 || !S_ISREG(old.st_mode)) return;
  ::fchmod(file_.get(), old.st_mode & 0777);
}

void PartialFile::sync() {
  sync_to_disk(file_.get());
}

void PartialFile::publish() {
  const int folder = folder_.get();
  if (::renameat(folder, name_.c_str(), folder, target_.c_str()) != 0) fail(errno);
  is_published_ = true;
  ++published;
  remove_entry(name_);
  if (file_.close() != 0) fail(errno);
}

// A folder that may not be read can't be synced.
void PartialFile::sync_folder() const {
  const FileDescriptor readable(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (readable.is_open()) sync_to_disk(readable.get());
}

void PartialFile::remove() noexcept {
  ::unlinkat(folder_.get(), name_.c_str(), 0);
  remove_entry(name_);
}

void remove_partial_files() noexcept {
  for (const Entry& entry : entries) {
    if (entry.state == EntryState::kListed) ::unlinkat(entry.folder, entry.name.data(), 0);
  }
}

std::uint32_t published_files() noexcept {
  return published;
}

}  // namespace stepsim
