#include "pages/html_page.h"

#include <gtest/gtest.h>

#include <string>

#include "pages/page_assets.h"

namespace stepsim {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A page without what every page holds.
std::string own_text(const HtmlPage& page) {
  std::string html = page.text();
  for (const std::string_view part :
       {page_assets().charts, page_assets().script, page_assets().style}) {
    if (!part.empty()) html.erase(html.find(part), part.size());
  }
  return html;
}

TEST(HtmlPageTest, NoTextBecomesATag) {
  const std::string evil = "</script><img src=x onerror=\"go()\"> & 'more'";
  HtmlPage page(evil, evil);
  page.section("one", evil);
  page.paragraph(evil);
  page.list({evil});
  page.command(evil);
  page.facts({{evil, {evil}, evil}});
  page.table({.caption = evil, .columns = {evil}, .rows = {{{evil, evil, evil}}}});
  Json data = Json::object();
  data[evil] = evil;
  page.figure({.id = "x", .kind = "bars", .caption = evil, .description = evil, .data = data});
  page.result(data);
  const std::string html = own_text(page);
  EXPECT_FALSE(contains(html, "<img"));
  EXPECT_FALSE(contains(html, "onerror=\"go"));
  EXPECT_TRUE(contains(html,
                       "&lt;/script&gt;&lt;img src=x onerror=&quot;go()&quot;&gt; &amp; "
                       "&#39;more&#39;"));
  EXPECT_TRUE(contains(html, "\\u003c/script>\\u003cimg"));  // in the data, as JSON writes it
}

TEST(HtmlPageTest, ThePolicyAllowsTheTwoScriptsByTheirHashesAndNoRequest) {
  const std::string html = own_text(HtmlPage("title", "subtitle"));
  EXPECT_TRUE(contains(html, "default-src 'none'"));
  EXPECT_TRUE(contains(html, "script-src 'sha256-" + std::string(page_assets().charts_hash) +
                                 "' 'sha256-" + std::string(page_assets().script_hash) + "'"));
  for (const std::string_view tag : {"<script src", "<img", "<iframe", "@import", "url(http"}) {
    EXPECT_FALSE(contains(html, tag)) << tag;
  }
}

TEST(HtmlPageTest, ANumberKeepsItsValueAndItsPlaceInTheResult) {
  HtmlPage page("title", "");
  page.table({.rows = {{{"compute"}, {"1.5 s", "1.500000000001", "breakdown_s.compute"}}}});
  EXPECT_TRUE(contains(page.text(),
                       "<data value=\"1.500000000001\" "
                       "data-key=\"breakdown_s.compute\">1.5 s</data>"));
}

TEST(HtmlPageTest, EverySectionIsInTheContentsAndClosed) {
  HtmlPage page("title", "");
  page.section("a", "First");
  page.section("b", "Second");
  const std::string html = page.text();
  EXPECT_TRUE(contains(html, "<a href=\"#a\">First</a>"));
  EXPECT_TRUE(contains(html, "</section>\n<section id=\"b\""));
  EXPECT_TRUE(contains(html, "</section>\n</main>"));
}

TEST(HtmlPageTest, AFoldedTableIsBehindItsCaption) {
  HtmlPage page("title", "");
  page.table({.caption = "Plan", .rows = {{{"tp"}, {"8"}}}, .folded = true});
  EXPECT_TRUE(contains(page.text(), "<details><summary>Plan</summary>"));
}

}  // namespace
}  // namespace stepsim
