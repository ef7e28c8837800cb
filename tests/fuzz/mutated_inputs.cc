// Gives a reader many changed inputs, in any build:
//
//   stepsim_mutated_inputs kineto --count 1000000 [--from 0]
//
// Input i is a file of tests/fuzz/corpus/TARGET with one to eight changes that follow from i alone:
// bits, bytes and numbers that become others, stretches that are left out, doubled, or come from
// another file of the corpus, words of formats, and ends that are cut off. Unlike libFuzzer
// (scripts/fuzz.sh) it doesn't look at what the reader does with them.
//
// Ends with status 1, and says which input it was, if one crashes, takes more than 5 CPU seconds
// or 1.5 GB of address space, or throws what no reader may throw; `--from I --count 1 --print`
// shows it. The last line says how many were tried, how many the reader accepted, the longest time
// and the most memory, each with its input.

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/dictionary.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/reference_folder.h"

namespace stepsim {
namespace {

constexpr time_t kMostSeconds = 5;
constexpr rlim_t kMostAddresses = 3ULL << 29;  // 1.5 GiB
constexpr std::size_t kLongestInput = 1 << 16;

constexpr auto kWords = std::to_array<std::string_view>({"0",
                                                         "-1",
                                                         "1e308",
                                                         "-1e308",
                                                         "0.0000001",
                                                         "9223372036854775807",
                                                         "-9223372036854775808",
                                                         "18446744073709551616",
                                                         "2147483648",
                                                         "4294967295",
                                                         "1e-320",
                                                         "nan",
                                                         "null",
                                                         "true",
                                                         "\"\"",
                                                         "{}",
                                                         "[]",
                                                         "[[[[",
                                                         "}}",
                                                         "]]",
                                                         "\\u0000",
                                                         "\xff\xfe",
                                                         "\n",
                                                         "\r\n",
                                                         "\t",
                                                         ",",
                                                         ":",
                                                         "=",
                                                         "#",
                                                         "//",
                                                         "*",
                                                         "&a",
                                                         "*a",
                                                         "${A}",
                                                         "$(A)",
                                                         "--",
                                                         "'",
                                                         "\"",
                                                         "\\",
                                                         "(",
                                                         ")",
                                                         "\x1f\x8b\x08",
                                                         "\x08\xff\xff\xff\x0f",
                                                         "1e18",
                                                         "100000000000",
                                                         "0x10",
                                                         "1_000",
                                                         "..",
                                                         "../../etc/passwd",
                                                         "rank 0 {",
                                                         "send 8b to 0",
                                                         "\"ts\":-1",
                                                         "\"dur\":1e30",
                                                         "\"args\":[]",
                                                         "\"traceEvents\":"});

class Change {
 public:
  Change(std::uint64_t number, const std::vector<std::string>& corpus)
      : engine_(number * 0x9e3779b97f4a7c15ULL + 1), corpus_(corpus) {}

  std::string input() {
    std::string text = corpus_[below(corpus_.size())];
    const std::size_t changes = 1 + below(8);
    for (std::size_t i = 0; i < changes; ++i) change(text);
    if (text.size() > kLongestInput) text.resize(kLongestInput);
    return text;
  }

 private:
  std::size_t below(std::size_t most) { return most == 0 ? 0 : engine_() % most; }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, below(2) == 0 ? below(8) : below(256));
    switch (below(9)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        return;
      case 2:
        text.erase(at, length);
        return;
      case 3:
        text.insert(at, text.substr(at, length));
        return;
      case 4: {
        const std::string& other = corpus_[below(corpus_.size())];
        text.replace(at, length, other.substr(below(other.size() + 1), below(256)));
        return;
      }
      case 5:
        text.insert(at, kWords[below(kWords.size())]);
        return;
      case 6:
        return change_number(text, at);
      case 7:
        text.replace(at, length, kWords[below(kWords.size())]);
        return;
      default:
        if (below(8) == 0) text.resize(at);
    }
  }

  // Another number in the place of the next one.
  void change_number(std::string& text, std::size_t at) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const std::string number =
        below(2) == 0 ? std::string(kWords[below(12)]) : std::to_string(engine_() >> below(64));
    text.replace(begin, end - begin, number);
  }

  std::mt19937_64 engine_;
  const std::vector<std::string>& corpus_;
};

volatile std::sig_atomic_t is_running = 0;
volatile std::uint64_t running_input = 0;

// Writes with what is safe in a signal alone.
extern "C" void say_input(int signal) {
  std::array<char, 24> digits{};
  std::size_t at = digits.size();
  std::uint64_t rest = running_input;
  do {
    digits[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  constexpr std::string_view kTooLong = "too long: input ";
  constexpr std::string_view kCrash = "crash: input ";
  const std::string_view words = signal == SIGPROF ? kTooLong : kCrash;
  if (is_running != 0) {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, words.data(), words.size());
    written = write(STDERR_FILENO, &digits[at], digits.size() - at);
    written = write(STDERR_FILENO, "\n", 1);
  }
  _exit(1);
}

// Sets a timer that counts CPU time, so that a busy machine is no hang. 0 turns it off.
void set_timer(time_t seconds) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

std::vector<std::string> corpus_of_target(std::string_view target) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(fuzz_corpus_folder() / target)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

struct MutationRun {
  const FuzzTarget* target = nullptr;
  std::uint64_t from = 0;
  std::uint64_t count = 1000;
  bool prints = false;
};

// The most memory that the process had so far, in kB.
long most_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

int try_inputs(const MutationRun& run) {
  const std::vector<std::string> corpus = corpus_of_target(run.target->name);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGPROF}) {
    std::signal(signal, say_input);
  }
  std::uint64_t accepted = 0;
  double longest = 0;
  std::uint64_t longest_input = run.from;
  long most = most_memory();
  std::uint64_t largest_input = run.from;
  for (std::uint64_t i = run.from; i < run.from + run.count; ++i) {
    const std::string input = Change(i, corpus).input();
    if (run.prints) {
      std::fwrite(input.data(), 1, input.size(), stdout);
      std::fflush(stdout);
    }
    running_input = i;
    is_running = 1;
    set_timer(kMostSeconds);
    const std::clock_t begin = std::clock();
    try {
      accepted += is_accepted(*run.target, input) ? 1U : 0U;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "input %llu throws: %s\n", static_cast<unsigned long long>(i),
                   error.what());
      return 1;
    }
    set_timer(0);
    is_running = 0;
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > longest) {
      longest = seconds;
      longest_input = i;
    }
    if (most_memory() > most) {
      most = most_memory();
      largest_input = i;
    }
  }
  std::printf("%s: %llu inputs, %llu accepted, longest %.3f s (%llu), %ld MiB (%llu)\n",
              run.target->name.data(), static_cast<unsigned long long>(run.count),
              static_cast<unsigned long long>(accepted), longest,
              static_cast<unsigned long long>(longest_input), most / 1024,
              static_cast<unsigned long long>(largest_input));
  return 0;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  stepsim::MutationRun run;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--count" && has_value) {
      run.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--from" && has_value) {
      run.from = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--print") {
      run.prints = true;
    } else if (word == "--dictionary" && run.target != nullptr) {
      std::fputs(stepsim::dictionary_of(run.target->name).c_str(), stdout);
      return 0;
    } else {
      run.target = stepsim::fuzz_target(word);
    }
  }
  if (run.target == nullptr) {
    std::fputs(
        "usage: stepsim_mutated_inputs TARGET [--from I] [--count N] [--print | --dictionary]\n",
        stderr);
    return 2;
  }
  const rlimit limit{stepsim::kMostAddresses, stepsim::kMostAddresses};
  setrlimit(RLIMIT_AS, &limit);
  return stepsim::try_inputs(run);
}
