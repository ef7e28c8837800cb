// The options of `stepsim sweep`.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/subcommand.h"
#include "cli/sweep/sweep_axes.h"
#include "proto/load_experiment.h"

namespace stepsim {

// SweepShard is one of several processes that share the points of a sweep.
struct SweepShard {
  std::uint64_t index = 0;  // less than count
  std::uint64_t count = 1;

  bool has(std::uint64_t number) const { return number % count == index; }
};

// Reads "3/7". Numbers count from 1; 0 is another name of the last, for job arrays that start
// there. Adds a problem and returns the whole if the text is something else.
SweepShard read_shard(std::string_view text, std::vector<Problem>& problems);

// SweepPlot is what `--plot F.svg x=PATH y=COLUMN series=PATH` asks for.
struct SweepPlot {
  std::string file{};    // empty: none
  std::string x{};       // a path of the axes; empty: the first
  std::string y{};       // a column; empty: step_time_s
  std::string series{};  // a path of the axes; empty: the others together
};

struct SweepOutputs {
  std::string json{};  // empty: none; "-": standard output
  std::string csv{};
  std::string html{};
  SweepPlot plot{};
};

struct SweepRequest {
  ExperimentSource source;
  SweepSpace space;
  std::string description;  // JSON: the experiment and the axes, as they were asked for
  std::string store{};      // file; empty: none
  SweepShard shard{};
  std::size_t jobs = 1;
  SweepOutputs outputs{};
};

// Throws ConfigError with all problems of the options and the axes.
SweepRequest read_sweep_request(const std::vector<std::string>& arguments);

struct MergeRequest {
  std::vector<std::string> inputs;
  std::string store;
  SweepOutputs outputs{};
};
MergeRequest read_merge_request(const std::vector<std::string>& arguments);

OptionList sweep_option_list();

// Whether the words behind `stepsim sweep` are those of `stepsim sweep merge`.
bool is_merge(const std::vector<std::string>& arguments);

}  // namespace stepsim
