#include "cli/html_option.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "pages/page_assets.h"
#include "pages/result_page.h"
#include "proto/messages/json_value.h"

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

std::string asked_json(const CommandLine& line) {
  constexpr std::array<std::string_view, 14> kNotAsked = {
      "json",         "html", "csv",          "plot",    "svg",       "experiment", "trace",
      "trace-detail", "jobs", "requests-out", "threads", "max-input", "store",      "words"};
  Json asked = Json::object();
  for (std::size_t i = 0; i < line.words.size(); ++i) {
    asked[i == 0 ? "of" : "of " + std::to_string(i + 1)] = line.words[i];
  }
  for (const auto& [name, value] : line.options) {
    if (std::ranges::count(kNotAsked, name) > 0 || value.defaulted()) continue;
    if (const auto* const text = boost::any_cast<std::string>(&value.value())) {
      asked[name] = *text;
    } else if (const auto* const texts =
                   boost::any_cast<std::vector<std::string>>(&value.value())) {
      asked[name] = *texts;
    } else {
      asked[name] = true;
    }
  }
  return json_text(asked);
}

std::string html_of_result(const std::string& json) {
  const Json result = parse_json(json).value.value();
  return result_page(kind_of_result(result).value(), result);
}

}  // namespace stepsim
