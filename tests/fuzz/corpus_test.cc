// Every input of the corpus goes to its target: seeds, which are accepted or refused, and inputs
// that once broke a reader.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/dictionary.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/reference_folder.h"

namespace stepsim {
namespace {

std::vector<std::filesystem::path> corpus_of(std::string_view target) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = fuzz_corpus_folder() / target;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Also every beginning of a file, up to a limit: what a broken download leaves.
TEST(FuzzCorpusTest, EveryInputIsReadOrRefused) {
  for (const FuzzTarget& target : fuzz_targets()) {
    const std::vector<std::filesystem::path> files = corpus_of(target.name);
    EXPECT_FALSE(files.empty()) << target.name << " has no seeds";
    for (const std::filesystem::path& file : files) {
      const std::string text = content_of(file);
      EXPECT_NO_THROW(is_accepted(target, text)) << target.name << ": " << file;
      for (std::size_t part = 1; part < 20; ++part) {
        EXPECT_NO_THROW(is_accepted(target, text.substr(0, text.size() * part / 20)))
            << target.name << ": the first " << part << " twentieths of " << file;
      }
    }
  }
}

// A target whose seeds are all refused would never get deep into its reader.
TEST(FuzzCorpusTest, EachTargetAcceptsASeed) {
  for (const FuzzTarget& target : fuzz_targets()) {
    bool is_any_accepted = false;
    for (const std::filesystem::path& file : corpus_of(target.name)) {
      is_any_accepted = is_any_accepted || is_accepted(target, content_of(file));
    }
    EXPECT_TRUE(is_any_accepted) << target.name;
  }
}

// A new field is a word of the fuzzer's without anybody's doing.
TEST(FuzzDictionaryTest, HasTheFieldsAndTheirWords) {
  const auto has = [](std::string_view target, std::string_view line) {
    return ("\n" + dictionary_of(target)).find("\n" + std::string(line) + "\n") !=
           std::string::npos;
  };
  EXPECT_TRUE(has("experiment_text", R"("output_groups")"));
  EXPECT_TRUE(has("experiment_text", R"("sinkhorn_iterations")"));
  EXPECT_TRUE(has("experiment_json", R"("\"newton_schulz_steps\":")"));
  EXPECT_TRUE(has("experiment_json", R"("\"muon\"")"));
  EXPECT_TRUE(has("overrides", R"("model.vision.patch=")"));
  EXPECT_TRUE(has("overrides", R"("plan.optimizer=")"));
  EXPECT_TRUE(has("plan_keys", R"("vision_tokens=")"));
  EXPECT_TRUE(has("plan_keys", R"("zigzag_ring")"));
  EXPECT_TRUE(has("library", R"("protocol: ")"));
  EXPECT_TRUE(has("cluster", R"("nvlink_domain")"));
  EXPECT_EQ(dictionary_of("goal"), "");
}

}  // namespace
}  // namespace stepsim
