// InputOnDisk is a text as a file, in memory where the system has a folder for such files.

#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace stepsim {

class InputOnDisk {
 public:
  InputOnDisk(std::string_view input, std::string_view extension)
      : path_(folder() / ("stepsim-fuzz-" + std::to_string(getpid()) + std::string(extension))) {
    std::ofstream(path_, std::ios::binary) << input;
  }
  ~InputOnDisk() { std::filesystem::remove(path_); }
  InputOnDisk(const InputOnDisk&) = delete;
  InputOnDisk& operator=(const InputOnDisk&) = delete;

  std::string path() const { return path_.string(); }

 private:
  static std::filesystem::path folder() {
    const std::filesystem::path memory = "/dev/shm";
    return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace stepsim
