// Simulates random experiments and says what came of each.
//
//   stepsim_random_runs --from 1 --count 1000           a line each: seed, what came of it, digest
//   stepsim_random_runs --from 1 --count 1000 --laws    also holds the laws of run_laws.h
//   stepsim_random_runs --from 17 --count 1 --print     the experiment, for `stepsim run`
//
//   17 accepted 8c1f0a4be6d13597
//   18 refused plan.dp: is 3, which ...
//   19 broken breakdown_s adds up to ...
//
// The same seeds give the same lines on every platform and in every build. The last line, on
// standard error, is a summary. --summary prints it alone, with the fields that refused runs name
// first. Ends with exit status 1 if anything is broken, or if fewer than --require percent are
// accepted.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/field_text.h"
#include "tests/fuzz/random/choices.h"
#include "tests/fuzz/random/random_experiment.h"
#include "tests/fuzz/random/random_run.h"

namespace stepsim {
namespace {

struct Request {
  std::uint64_t from = 1;
  std::uint64_t count = 1000;
  std::uint64_t require = 0;  // percent
  Laws laws = Laws::kOfTheRun;
  bool prints = false;
  bool summary = false;
};

struct Tally {
  std::uint64_t accepted = 0;
  std::uint64_t broken = 0;
  std::map<std::string, std::uint64_t> refused;  // by the field of the first problem
};

std::optional<Request> read_request(int argc, char** argv) {
  Request request;
  for (int at = 1; at < argc; ++at) {
    const std::string_view option = argv[at];
    const auto number = at + 1 < argc ? number_in<std::uint64_t>(argv[at + 1]) : std::nullopt;
    std::uint64_t* const target = option == "--from"      ? &request.from
                                  : option == "--count"   ? &request.count
                                  : option == "--require" ? &request.require
                                                          : nullptr;
    if (target != nullptr && number) {
      *target = *number;
      ++at;
    } else if (option == "--laws") {
      request.laws = Laws::kAll;
    } else if (option == "--print") {
      request.prints = true;
    } else if (option == "--summary") {
      request.summary = true;
    } else {
      return std::nullopt;
    }
  }
  return request;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Returns "accepted 8c1f0a4be6d13597" and counts it.
std::string line_of(const RandomOutcome& outcome, Tally& tally) {
  if (!outcome.broken.empty()) {
    ++tally.broken;
    return "broken " + first_line(outcome.broken);
  }
  if (!outcome.refused.empty()) {
    const Problem& problem = outcome.refused.front();
    ++tally.refused[problem.field];
    return "refused " + problem.field + ": " + first_line(problem.message);
  }
  ++tally.accepted;
  return fmt::format("accepted {:016x}", digest_of(outcome.json));
}

void print_summary(const Request& request, const Tally& tally) {
  if (request.summary) {
    for (const auto& [field, count] : tally.refused) fmt::print(stderr, "{:7} {}\n", count, field);
  }
  fmt::print(stderr, "{} runs from {}: {} accepted, {} broken\n", request.count, request.from,
             tally.accepted, tally.broken);
}

int run(const Request& request) {
  Tally tally;
  for (std::uint64_t seed = request.from; seed < request.from + request.count; ++seed) {
    Choices choices(seed);
    const std::string experiment = random_experiment(choices);
    if (request.prints) {
      fmt::print("{}", experiment);
      continue;
    }
    const RandomOutcome outcome = run_random(experiment, request.laws);
    const std::string line = line_of(outcome, tally);
    if (!request.summary || !outcome.broken.empty()) fmt::print("{} {}\n", seed, line);
    std::fflush(stdout);
  }
  if (!request.prints) print_summary(request, tally);
  return tally.broken > 0 || tally.accepted * 100 < request.require * request.count ? 1 : 0;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  const auto request = stepsim::read_request(argc, argv);
  if (request) return stepsim::run(*request);
  fmt::print(stderr,
             "usage: {} [--from SEED] [--count N] [--laws] [--require PERCENT] [--print] "
             "[--summary]\n",
             argv[0]);
  return 2;
}
