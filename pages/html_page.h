// HtmlPage is a report in one file: text, tables, and figures that a script draws when the page is
// opened. It asks nothing of any server, and a policy in its head forbids it to.
//
//   HtmlPage page("llama3-70b-dgx-h100-512", "a training step");
//   page.section("memory", "Memory");
//   page.paragraph("rank 0 holds most");
//   page.figure({.id = "memory", .kind = "areas", ...});
//   page.table({.columns = {"category", "bytes"}, .rows = {{{"parameters"},
//   shown_bytes(4541513728)}}}); const std::string html = page.text();
//
// All texts are escaped here, so they may come from anybody. What figures show stands in a table
// too, where it is not long: a page says as much without a script and to a screen reader. Equal
// pages have equal bytes.
//
// Kinds of figures and their data: pages/page.js.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages/json_value.h"

namespace stepsim {

// Shown is a text and the number behind it, as the JSON of the result has it.
struct Shown {
  std::string text{};
  std::string value{};  // empty: the text is all
  std::string key{};    // where the result has it: "memory.peak_bytes"; empty: not said
};

struct PageTable {
  std::string caption{};
  std::vector<std::string> columns{};  // empty: none
  std::vector<std::vector<Shown>> rows{};
  bool folded = false;  // behind its caption until somebody opens it
};

struct PageFact {
  std::string name{};
  Shown shown{};
  std::string remark{};
};

struct PageFigure {
  std::string id{};
  std::string kind{};
  std::string caption{};      // below the figure
  std::string description{};  // what a reader who can't see it should know
  Json data = Json::object();
  std::optional<PageTable> table{};  // the same numbers
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string subtitle);

  // `id` is unique in the page: the section's address.
  void section(std::string_view id, std::string_view heading);
  void paragraph(std::string_view text);
  void list(const std::vector<std::string>& items);
  void command(std::string_view text);  // that somebody may type
  void facts(const std::vector<PageFact>& facts);
  void table(const PageTable& table);
  // REQUIRES: the build has charts.
  void figure(PageFigure figure);
  // What the page keeps for programs: <script type="application/json" id="result">.
  void result(const Json& result);

  // Returns the whole file.
  std::string text() const;

 private:
  void close_section();

  std::string title_;
  std::string subtitle_;
  std::string contents_;  // the list of sections
  std::string body_;
  std::string result_;
  Json figures_ = Json::object();
  bool in_section_ = false;
};

// Returns the text as HTML that shows it.
std::string html_escaped(std::string_view text);

}  // namespace stepsim
