#include "import/input_bytes.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "sim/base/field_text.h"
#include "sim/base/inflated_input.h"
#include "sim/base/input_file.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostFiles = 1 << 20;

bool by_rank(const std::string& a, const std::string& b) {
  const std::optional<std::uint32_t> first = rank_in_name(a);
  const std::optional<std::uint32_t> second = rank_in_name(b);
  return first && second && *first != *second ? *first < *second : a < b;
}

}  // namespace

std::optional<std::string> read_bytes(const std::string& path, std::vector<Problem>& problems,
                                      InputKind kind) {
  InputFile file(path, kind);
  InflatedInput input(file);
  std::string text;
  for (auto block = input.next(); !block.empty(); block = input.next()) {
    text.append(block.data(), block.size());
  }
  const std::string problem = input.why_unreadable();
  if (problem.empty()) return text;
  problems.push_back({path, "can't be read: " + problem});
  return std::nullopt;
}

std::vector<std::string> files_of(const std::vector<std::string>& paths, std::string_view suffix,
                                  std::vector<Problem>& problems) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      const std::string name = entry.path().string();
      if (name.ends_with(suffix) && files.size() < kMostFiles) files.push_back(name);
    }
    std::ranges::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(), by_rank);
    if (files.size() == before) {
      problems.push_back({path, "is a folder without files that end in " + std::string(suffix)});
    }
  }
  return files;
}

std::string short_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::optional<std::uint32_t> rank_in_name(const std::string& path) {
  const std::string name = short_name(path);
  std::size_t end = name.size();
  // Compressed files of rank 3 are called "trace.3.json.gz".
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  return number_in<std::uint32_t>(std::string_view(name).substr(begin, end - begin));
}

}  // namespace stepsim
