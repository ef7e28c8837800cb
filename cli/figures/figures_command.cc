#include "cli/figures/figures_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>

#include "books/laboratory/figures.h"
#include "cli/command_line.h"
#include "cli/outputs.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description figures_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("out", po::value<std::string>()->value_name("DIR"),
      "folder for the figures; made if it is not there");
  return options;
}

std::vector<Figure> choose(const std::vector<std::string>& names, std::vector<Problem>& problems) {
  std::vector<std::string> known;
  for (const Figure& figure : figures()) known.emplace_back(figure.name);
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) > 0) continue;
    problems.push_back(
        {name,
         "no such figure" + did_you_mean(name, known, "There are: " + comma_separated(known))});
  }
  std::vector<Figure> chosen;
  for (const Figure& figure : figures()) {
    if (names.empty() || std::ranges::count(names, std::string(figure.name)) > 0) {
      chosen.push_back(figure);
    }
  }
  return chosen;
}

ExitStatus run_figures_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, figures_option_list(), problems);
  const std::vector<Figure> chosen = choose(line.words, problems);
  if (line.options.count("out") == 0) {
    problems.push_back({"--out", "must be given: the folder that the figures go to"});
  }
  const std::string folder = read_output_folder(line, "out", problems);
  throw_if_any(std::move(problems));
  Outputs outputs;
  for (const Figure& figure : chosen) {
    outputs.write(fmt::format("{}/{}.svg", folder, figure.name),
                  plot_svg(figure.draw(Laboratory{})));
    outputs.commit();
    outputs.print(fmt::format("  {:<24} {}\n", figure.name, figure.what));
  }
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kFiguresSubcommand = {
    .name = "figures",
    .arguments = "[NAME...] --out DIR",
    .summary = "draw the books' figures from simulation",
    .description =
        R"(stepsim figures draws the books' figures from simulation. Formulas are lines; simulated steps and
collectives are points. Each figure is one SVG file with the same bytes each time. docs/figures.md
shows them all.

Usage:
  stepsim figures --out DIR              every figure
  stepsim figures bubble --out DIR       the figures named
)",
    .options = figures_option_list,
    .run = run_figures_command,
};

}  // namespace stepsim
