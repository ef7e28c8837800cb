// Shared code of the tests of proto/: files in a folder of their own, and the problems of an
// experiment as "field: message" lines.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {

class ExperimentCase : public ::testing::Test {
 protected:
  ExperimentCase()
      : folder_(temporary_folder() /
                (std::string(
                     ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()) +
                 "_" + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }
  ~ExperimentCase() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  // Returns no lines if the experiment is good. The folder of the tests is cut off file names.
  std::vector<std::string> problems_of(const ExperimentSource& source) const {
    try {
      load_experiment(source);
    } catch (const ConfigError& error) {
      std::vector<std::string> lines;
      for (const Problem& problem : error.problems()) {
        std::string line = problem.field + ": " + problem.message;
        const std::string prefix = folder_.string() + "/";
        for (auto at = line.find(prefix); at != std::string::npos; at = line.find(prefix)) {
          line.erase(at, prefix.size());
        }
        lines.push_back(line);
      }
      return lines;
    }
    return {};
  }

 private:
  std::filesystem::path folder_;
};

using Lines = std::vector<std::string>;

inline ExperimentSource with_overrides(const std::string& experiment,
                                       std::vector<std::string> overrides) {
  ExperimentSource source;
  source.experiment = experiment;
  source.overrides = std::move(overrides);
  return source;
}

inline ExperimentSource from(const std::string& experiment) {
  return with_overrides(experiment, {});
}

inline ExperimentSource from_flags(const std::string& model, const std::string& cluster,
                                   const std::string& plan) {
  ExperimentSource source;
  source.model = model;
  source.cluster = cluster;
  source.plan = plan;
  return source;
}

// Returns whether one of the lines starts with `start`.
inline bool has_line(const Lines& lines, std::string_view start) {
  return std::any_of(lines.begin(), lines.end(),
                     [start](const std::string& line) { return line.starts_with(start); });
}

}  // namespace stepsim
