#include "traces/files/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stepsim {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string decompressed(const fs::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::string chunk(1 << 16, '\0');
  for (int n = 0; (n = gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
    text.append(chunk, 0, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(gzclose(file), Z_OK) << "the stream is whole and its checksum right";
  return text;
}

std::string message_of(const std::string& path) {
  try {
    OutputFile file(path);
    file.write("x");
    file.commit();
  } catch (const OutputError& error) {
    return error.what();
  }
  return "written";
}

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("output_file_" + name + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string in_folder(std::string_view name) const { return (folder_ / name).string(); }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsOnlyWhenCommitted) {
  OutputFile file(in_folder("a.json"));
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(fs::exists(in_folder("a.json")));
  file.commit();
  EXPECT_EQ(contents(in_folder("a.json")), "one two");
  EXPECT_EQ(files(), 1) << "the temporary is gone";
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  { OutputFile(in_folder("a.json")).write("half"); }
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, KeepsTheOldFileUntilCommitted) {
  std::ofstream(in_folder("a.json")) << "old";
  { OutputFile(in_folder("a.json")).write("half"); }
  EXPECT_EQ(contents(in_folder("a.json")), "old");
  OutputFile file(in_folder("a.json"));
  file.write("new");
  file.commit();
  EXPECT_EQ(contents(in_folder("a.json")), "new");
}

TEST_F(OutputFileTest, CompressesByItsName) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 104'729) + ",";
  OutputFile file(in_folder("a.json.gz"));
  for (std::size_t at = 0; at < text.size(); at += 999) file.write(text.substr(at, 999));
  file.commit();
  EXPECT_EQ(decompressed(in_folder("a.json.gz")), text);
  EXPECT_LT(fs::file_size(in_folder("a.json.gz")), text.size() / 2);
}

TEST_F(OutputFileTest, AnEmptyCompressedFileIsStillOne) {
  OutputFile(in_folder("a.gz")).commit();
  EXPECT_EQ(decompressed(in_folder("a.gz")), "");
  EXPECT_GT(fs::file_size(in_folder("a.gz")), 0U);
}

TEST_F(OutputFileTest, CompressedBytesHoldNoTimeAndNoName) {
  for (const char* name : {"a.gz", "b.gz"}) {
    OutputFile file(in_folder(name));
    file.write("the same");
    file.commit();
  }
  const std::string bytes = contents(in_folder("a.gz"));
  EXPECT_EQ(bytes, contents(in_folder("b.gz")));
  // RFC 1952: byte 3 the flags (8: a name follows), bytes 4 to 7 the time of change.
  EXPECT_EQ(bytes.substr(3, 5), std::string(5, '\0'));
}

TEST_F(OutputFileTest, NamesThePathAndTheReason) {
  EXPECT_EQ(message_of(in_folder("none/a.json")),
            in_folder("none/a.json") + ": can't be written: no such folder: " + in_folder("none"));
  EXPECT_EQ(message_of(folder_.string()), folder_.string() + ": can't be written: it is a folder");
  std::ofstream(in_folder("plain")) << "x";
  EXPECT_EQ(message_of(in_folder("plain/a.json")),
            in_folder("plain/a.json") + ": can't be written: not a folder: " + in_folder("plain"));
  EXPECT_EQ(message_of(""), ": can't be written: the name is empty");
}

TEST_F(OutputFileTest, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(message_of("/dev/full"), "/dev/full: can't be written: No space left on device");
  fs::create_symlink("/dev/full", in_folder("full.gz"));
  EXPECT_EQ(message_of(in_folder("full.gz")),
            in_folder("full.gz") + ": can't be written: No space left on device");
}

TEST_F(OutputFileTest, WritesToADeviceWithoutReplacingIt) {
  EXPECT_EQ(message_of("/dev/null"), "written");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, FollowsASymbolicLink) {
  std::ofstream(in_folder("target")) << "old";
  fs::create_symlink(in_folder("target"), in_folder("link"));
  EXPECT_EQ(message_of(in_folder("link")), "written");
  EXPECT_TRUE(fs::is_symlink(in_folder("link")));
  EXPECT_EQ(contents(in_folder("target")), "x");
}

TEST_F(OutputFileTest, MakesTheTargetOfALinkThatLeadsToNothing) {
  fs::create_symlink("target", in_folder("link"));
  EXPECT_TRUE(check_writable(in_folder("link")).empty());
  EXPECT_EQ(message_of(in_folder("link")), "written");
  EXPECT_TRUE(fs::is_symlink(in_folder("link")));
  EXPECT_EQ(contents(in_folder("target")), "x");
}

TEST_F(OutputFileTest, ALongNameIsNoProblemAndOneTooLongIsSaidAtOnce) {
  EXPECT_EQ(message_of(in_folder(std::string(255, 'a'))), "written");
  EXPECT_EQ(check_writable(in_folder(std::string(256, 'a'))).size(), 1U);
}

TEST_F(OutputFileTest, SeveralFilesAppearTogether) {
  OutputFile one(in_folder("a.json"));
  OutputFile other(in_folder("b.json.gz"));
  for (OutputFile* file : {&one, &other}) {
    file->write("text");
    file->finish();
  }
  EXPECT_FALSE(fs::exists(in_folder("a.json")) || fs::exists(in_folder("b.json.gz")));
  for (OutputFile* file : {&one, &other}) file->publish();
  EXPECT_EQ(contents(in_folder("a.json")), "text");
  EXPECT_EQ(decompressed(in_folder("b.json.gz")), "text");
  for (OutputFile* file : {&one, &other}) file->commit();
  EXPECT_EQ(files(), 2);
}

// A writer holds a lock on its file; nobody holds one on the file of a dead process.
TEST_F(OutputFileTest, RemovesWhatDeadProcessesLeftAndNothingElse) {
  const std::string left = in_folder(".stepsim-0123456789abcdef.partial");
  const std::string own = in_folder(".stepsim-notes.partial");
  std::ofstream(left) << "half";
  std::ofstream(own) << "not from an OutputFile";
  OutputFile living(in_folder("a.json"));
  living.write("living");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(message_of(in_folder("b.json")), "written");
  living.commit();
  EXPECT_EQ(contents(in_folder("a.json")), "living");
  EXPECT_TRUE(fs::exists(own));
  EXPECT_EQ(files(), 3);
}

TEST_F(OutputFileTest, KeepsThePermissionsOfTheTarget) {
  std::ofstream(in_folder("a.json")) << "old";
  fs::permissions(in_folder("a.json"), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(message_of(in_folder("a.json")), "written");
  EXPECT_EQ(fs::status(in_folder("a.json")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, AsksWithoutLeavingATrace) {
  EXPECT_TRUE(check_writable(in_folder("a.json")).empty());
  EXPECT_EQ(files(), 0);
  const std::vector<Problem> problems = check_writable(in_folder("none/a.json"));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, in_folder("none/a.json"));
}

TEST_F(OutputFileTest, AskingAboutAPipeDoesNotWaitForItsReader) {
  ASSERT_EQ(mkfifo(in_folder("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(check_writable(in_folder("pipe")).empty());
}

}  // namespace
}  // namespace stepsim
