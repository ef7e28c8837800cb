#include "traces/files/output_place.h"

#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace stepsim {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel follows

using FileId = std::pair<dev_t, ino_t>;

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

FileId id_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool have_one_folder(const std::string& one, const std::string& other) {
  const auto of_one = status_of(folder_of(one));
  const auto of_other = status_of(folder_of(other));
  return of_one && of_other && id_of(*of_one) == id_of(*of_other);
}

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

std::string text_of(int error) {
  return std::generic_category().message(error);
}

}  // namespace

std::string followed(const std::string& path) {
  fs::path target = path;
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(target, error); ++links) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) return path;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

bool is_special(const std::string& path) {
  const auto status = status_of(path);
  return status && !S_ISREG(status->st_mode);
}

std::string trouble_with_place(const std::string& path) {
  if (path.empty()) return "the name is empty";
  const std::string target = followed(path);
  if (const auto status = status_of(target))
    return S_ISDIR(status->st_mode) ? "it is a folder" : "";
  const int error = errno;
  const std::string folder = folder_of(target);
  const auto of_folder = status_of(folder);
  if (!of_folder && errno == ENOENT) return "no such folder: " + folder;
  if (!of_folder && errno != ENOTDIR) return text_of(errno) + ": " + folder;
  if (!of_folder || !S_ISDIR(of_folder->st_mode)) return "not a folder: " + folder;
  return error == ENOENT ? "" : text_of(error);
}

bool is_same_output(const std::string& one, const std::string& other) {
  const auto of_one = status_of(one);
  const auto of_other = status_of(other);
  if (of_one && of_other) {
    return id_of(*of_one) == id_of(*of_other) && !S_ISCHR(of_one->st_mode);
  }
  const std::string target = followed(one);
  const std::string other_target = followed(other);
  return have_one_folder(target, other_target) &&
         ::strcasecmp(file_name(target).c_str(), file_name(other_target).c_str()) == 0;
}

bool is_one_file(const std::string& path, const std::string& other) {
  const auto of_path = status_of(path);
  const auto of_other = status_of(other);
  return of_path && of_other && S_ISREG(of_path->st_mode) && id_of(*of_path) == id_of(*of_other);
}

bool is_file_of_standard_output(const std::string& path) {
  struct stat output {};
  if (::fstat(STDOUT_FILENO, &output) != 0 || !S_ISREG(output.st_mode)) return false;
  const auto status = status_of(path);
  return status && id_of(*status) == id_of(output);
}

}  // namespace stepsim
