#include "cli/sweep/sweep_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/processes/process_group.h"
#include "cli/session/interrupts.h"
#include "cli/session/progress.h"
#include "cli/session/progress_line.h"
#include "cli/session/session.h"
#include "cli/session/standard_output.h"
#include "cli/sweep/point_bench.h"
#include "cli/sweep/sweep_merge.h"
#include "cli/sweep/sweep_options.h"
#include "cli/sweep/sweep_run.h"
#include "cli/version.h"
#include "sim/base/quantity_text.h"
#include "store/result_store.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {
namespace {

// "sweep: 37 of 100 points, 12 of them stored before, 3.2 a second, 20 s left"
class SweepLine {
 public:
  void show(const SweepCounts& counts) {
    if (!line_.is_due()) return;
    const std::uint64_t done = counts.run + counts.stored + counts.refused;
    std::string text = fmt::format("sweep: {} of {} points", done, counts.points);
    if (counts.stored > 0) text += fmt::format(", {} of them stored before", counts.stored);
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (counts.run > 0) {
      const double rate = static_cast<double>(counts.run) / seconds;
      text += fmt::format(", {:.3g} a second, {:.0f} s left", rate,
                          static_cast<double>(counts.points - done) / rate);
    }
    line_.show(text);
  }
  void wipe() { line_.wipe(); }

 private:
  using Clock = std::chrono::steady_clock;
  ProgressLine line_;
  Clock::time_point start_ = Clock::now();
};

ExitStatus write_table(const SweepOutputs& asked, const SweepTable& table,
                       const SweepCounts& counts) {
  Outputs outputs;
  const std::string json =
      asked.json.empty() && asked.html.empty() ? "" : sweep_json(table, asked.plot);
  outputs.write(asked.json, json);
  if (!asked.html.empty()) outputs.write(asked.html, html_of_result(json));
  if (!asked.csv.empty()) outputs.write(asked.csv, sweep_csv(table));
  if (!asked.plot.file.empty()) {
    outputs.write(asked.plot.file, plot_svg(sweep_plot(table, asked.plot)));
  }
  outputs.commit();
  outputs.print(asked.json == "-" ? json : sweep_report(table, counts, shows_color(STDOUT_FILENO)));
  return outputs.end(counts.missing > 0 ? ExitStatus::kNo : ExitStatus::kDone);
}

ExitStatus run_merge(const std::vector<std::string>& arguments) {
  const MergeRequest request = read_merge_request(arguments);
  const MergedSweep merged = merge_stores(request);
  return write_table(request.outputs, merged.table, merged.counts);
}

// Few words are enough for many points, each of which is a run.
void warn_of_many(const SweepRequest& request, bool has_store) {
  constexpr std::uint64_t kMany = 10'000;
  if (request.space.size() <= kMany || current_session() != nullptr) return;
  print_error(fmt::format("stepsim: warning: {} points, each of which is simulated{}\n",
                          request.space.size(),
                          has_store ? "" : "; --store FILE keeps those that are done"));
}

ExitStatus run_sweep_command(const std::vector<std::string>& arguments) {
  if (is_merge(arguments)) return run_merge(arguments);
  const std::unique_ptr<ProcessGroup> group = ProcessGroup::join();
  if (group && !group->is_first()) {
    do_points_for(*group, arguments);
    return ExitStatus::kDone;
  }
  const SweepRequest request = read_sweep_request(arguments);
  std::optional<ResultStore> store;
  if (!request.store.empty()) {
    store.emplace(request.store, version());
    set_interrupt_words("what has been run is in " + request.store +
                        ", and the same command goes on from there");
  }
  warn_of_many(request, store.has_value());
  SweepLine line;
  SweepWatch watch{.progress = [&](const SweepCounts& counts) { line.show(counts); }};
  if (Session* const session = current_session(); session != nullptr && session->part) {
    watch.row = [session](const std::vector<std::string>& paths, const SweepRow& row) {
      session->part(sweep_point_json(paths, row));
    };
  }
  const SweepResult result = run_points(request, store ? &*store : nullptr, group.get(), watch);
  line.wipe();
  set_interrupt_words("");
  store.reset();
  return write_table(request.outputs, result.table, result.counts);
}

}  // namespace

constinit const Subcommand kSweepSubcommand = {
    .name = "sweep",
    .arguments = "EXPERIMENT --over PATH=A,B,.. [options]",
    .summary = "run an experiment at many points, and go on where it stopped",
    .description =
        R"(stepsim sweep runs an experiment at every point of its axes. With --store it keeps the results in an
SQLite file. Killed at any instant and started again, it runs only what is missing.

Usage:
  stepsim sweep llama3-8b-dgx-h100-8 --over plan.tp=1,2,4,8 --over plan.zero=0..3
                --store s.sqlite --csv s.csv --plot s.svg x=plan.tp series=plan.zero
  stepsim sweep FILE --store s.sqlite      FILE: an experiment with its axes
  stepsim sweep merge A.sqlite B.sqlite --store all.sqlite [--csv F] [--json F] [--plot F]
                [--html F]

EXPERIMENT is what stepsim run takes. Several --over are crossed; several fields of one, as in
--over plan.tp=1,2,4,plan.dp=8,4,2, go together. A path may leave out groups: cluster..nic_bandwidth.
On many machines: mpirun -n 8 stepsim sweep .. shares the points among processes (srun likewise).
--shard 3/7 runs a seventh of the points, for job arrays, and `merge` joins the stores of all.
docs/sweep.md has a session and the tables of a store.
)",
    .options = sweep_option_list,
    .run = run_sweep_command,
    .results = sweep_command_results,
};

}  // namespace stepsim
