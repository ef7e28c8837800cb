// Regular files and pipes that deliver are read; everything else is refused in words.

#include "sim/base/input_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

class InputFileTest : public ::testing::Test {
 protected:
  InputFileTest()
      : folder_(temporary_folder() /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~InputFileTest() override {
    set_input_settings({});
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& text) const {
    std::ofstream(path("file")) << text;
    return path("file");
  }

  std::string make_pipe() const {
    EXPECT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }

  static std::string problem_of(const std::string& name) {
    const TextOrProblem read = read_input(name, InputKind::kText);
    EXPECT_FALSE(read.text);
    return read.problem;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(InputFileTest, LeavesOutTheMarkOfUtf8AndRefusesUtf16) {
  EXPECT_EQ(read_input(write("\xef\xbb\xbfname: 1"), InputKind::kText).text, "name: 1");
  EXPECT_EQ(read_input(write("\xef\xbb"), InputKind::kText).text, "\xef\xbb");
  EXPECT_EQ(problem_of(write("\xff\xfen")), "it is in UTF-16; save it as UTF-8");
  EXPECT_EQ(problem_of(write("\xfe\xff")), "it is in UTF-16; save it as UTF-8");
}

TEST_F(InputFileTest, ReadsWhatGzipHasCompressed) {
  const std::string text = "{\"step_time_s\": 1.5}\n";
  const auto compressed = [&](const std::string& plain) {
    gzFile file = gzopen(path("file.gz").c_str(), "wb");
    gzwrite(file, plain.data(), static_cast<unsigned>(plain.size()));
    gzclose(file);
    return path("file.gz");
  };
  EXPECT_EQ(read_input(compressed(text), InputKind::kText).text, text);
  std::filesystem::resize_file(compressed(text), 20);
  EXPECT_EQ(problem_of(path("file.gz")), "it is truncated: the gzip stream stops before its end");
  set_input_settings({.most_bytes = Bytes(1000)});
  EXPECT_EQ(read_input(compressed(std::string(1000, 'x')), InputKind::kText).text->size(), 1000U);
  EXPECT_EQ(problem_of(compressed(std::string(1001, 'x'))),
            "it decompresses to more than 1000 bytes; --max-input SIZE allows more");
}

TEST_F(InputFileTest, ReadsAFileOfAnySizeWithinTheLimit) {
  for (const std::size_t size : {0U, 1U, 65'536U, 1'000'000U}) {
    const std::string text(size, 'x');
    EXPECT_EQ(read_input(write(text), InputKind::kText).text, text);
  }
}

TEST_F(InputFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(problem_of(path("none")), "No such file or directory");
  EXPECT_EQ(problem_of(path("")), "it is a folder");
  EXPECT_EQ(problem_of("/dev/zero"), "it is a device; only files and pipes are read");
  EXPECT_EQ(problem_of("/dev/urandom"), "it is a device; only files and pipes are read");
}

// The file is there, but the process may open no more files.
TEST_F(InputFileTest, AFileThatCannotBeOpenedIsRefused) {
  const std::string name = write("text");
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const TextOrProblem read = read_input(name, InputKind::kText);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_FALSE(read.text);
  EXPECT_EQ(read.problem, "Too many open files");
}

TEST_F(InputFileTest, RefusesASocket) {
  const std::string name = path("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  name.copy(address.sun_path, name.size());
  const int socket_of_test = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket_of_test, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(problem_of(name), "it is a socket; only files and pipes are read");
  close(socket_of_test);
}

TEST_F(InputFileTest, TheLimitIsInTheMessageAndCanBeRaised) {
  const std::string name = write(std::string((16 << 20) + 1, 'x'));
  EXPECT_EQ(problem_of(name), "it has more than 16 MiB; --max-input SIZE allows more");
  set_input_settings({.most_bytes = Bytes(17 << 20)});
  EXPECT_TRUE(read_input(name, InputKind::kText).text);
  set_input_settings({.most_bytes = Bytes(1000)});
  EXPECT_EQ(problem_of(name), "it has more than 1000 bytes; --max-input SIZE allows more");
}

TEST_F(InputFileTest, ReadsAPipeAndReadsItAgain) {
  const std::string name = make_pipe();
  std::thread writer([&] { std::ofstream(name) << "from a pipe"; });
  InputFile file(name, InputKind::kText);
  for (int pass = 0; pass < 2; ++pass) {
    std::string text;
    std::string block(4, ' ');
    while (const std::size_t size = file.read(block)) text += block.substr(0, size);
    EXPECT_EQ(text, "from a pipe");
    EXPECT_EQ(file.problem(), "");
    file.rewind();
  }
  writer.join();
}

TEST_F(InputFileTest, APipeIsLimitedToo) {
  set_input_settings({.most_bytes = Bytes(100)});
  const std::string name = make_pipe();
  std::thread writer([&] { std::ofstream(name) << std::string(200, 'x'); });
  EXPECT_EQ(problem_of(name), "it has more than 100 bytes; --max-input SIZE allows more");
  writer.join();
}

TEST_F(InputFileTest, APipeThatDeliversNothingIsGivenUp) {
  set_input_settings({.patience = std::chrono::milliseconds(1000)});
  EXPECT_EQ(problem_of(make_pipe()), "it is a pipe that kept stepsim waiting for more than 1 s");
}

}  // namespace
}  // namespace stepsim
