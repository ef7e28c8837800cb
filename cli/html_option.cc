#include "cli/html_option.h"

#include "pages/page_assets.h"

namespace stepsim {

void add_html_option(boost::program_options::options_description& options) {
  options.add_options()("html", boost::program_options::value<std::string>()->value_name("FILE"),
                        "write a report with charts, in one file for a browser; ends in .html");
}

std::string read_html_path(const CommandLine& line, const std::vector<std::string>& others,
                           std::vector<Problem>& problems) {
  std::string path = read_output_path(line, "html", OutputFormat::kHtml, problems);
  for (const std::string& other : others) refuse_same_output(line, other, "html", problems);
  if (line.options.count("html") != 0 && !has_charts()) {
    problems.push_back({"--html",
                        "needs Apache ECharts, without which this stepsim was built: run "
                        "scripts/install_dependencies.sh, and build it again"});
  }
  return path;
}

}  // namespace stepsim
