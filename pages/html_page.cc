#include "pages/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <utility>

#include "pages/page_assets.h"
#include "sim/base/palette.h"
#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

// JSON between the tags of a script: "<" could end it, and a JSON text may write it otherwise.
std::string script_json(const Json& value) {
  std::string text;
  for (const char character : json_text(value)) {
    if (character == '<') {
      text += "\\u003c";
    } else {
      text += character;
    }
  }
  return text;
}

std::string shown_html(const Shown& shown) {
  if (shown.value.empty()) return html_escaped(shown.text);
  const std::string key =
      shown.key.empty() ? "" : fmt::format(R"( data-key="{}")", html_escaped(shown.key));
  return fmt::format(R"(<data value="{}"{}>{}</data>)", html_escaped(shown.value), key,
                     html_escaped(shown.text));
}

// Long texts keep a width that can be read.
std::string_view class_of(const Shown& shown) {
  constexpr std::size_t kLongText = 32;
  constexpr std::size_t kSomeText = 12;
  if (!shown.value.empty() || shown.text == "-") return R"( class="number")";
  if (shown.text.size() > kLongText) return R"( class="words")";
  return shown.text.size() > kSomeText ? R"( class="phrase")" : "";
}

std::string cells_html(const PageTable& table) {
  std::string html = "<table>\n";
  if (!table.columns.empty()) {
    html += "<thead><tr>";
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const bool number = !table.rows.empty() && i < table.rows.front().size() &&
                          !table.rows.front()[i].value.empty();
      html += fmt::format(R"(<th scope="col"{}>{}</th>)", number ? R"( class="number")" : "",
                          html_escaped(table.columns[i]));
    }
    html += "</tr></thead>\n";
  }
  html += "<tbody>\n";
  for (const std::vector<Shown>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string inside = shown_html(row[i]);
      if (i == 0) {
        html += fmt::format(R"(<th scope="row"{}>{}</th>)",
                            row[i].value.empty() ? class_of(row[i]) : "", inside);
      } else {
        html += fmt::format("<td{}>{}</td>", class_of(row[i]), inside);
      }
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string table_html(const PageTable& table) {
  const std::string cells =
      fmt::format(R"(<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>)",
                  html_escaped(table.caption.empty() ? "table" : table.caption), cells_html(table));
  if (!table.folded) {
    if (table.caption.empty()) return cells + "\n";
    return fmt::format("<p class=\"caption\">{}</p>\n{}\n", html_escaped(table.caption), cells);
  }
  return fmt::format("<details><summary>{}</summary>{}</details>\n", html_escaped(table.caption),
                     cells);
}

// Variables of page.css. Print is light.
std::string palette_css() {
  std::string light = "--scheme:light";
  std::string dark = "--scheme:dark";
  for (const Neutral& one : neutrals()) {
    light += fmt::format(";--{}:{}", one.name, one.colour.light);
    dark += fmt::format(";--{}:{}", one.name, one.colour.dark);
  }
  return fmt::format(
      ":root{{{}}}\n@media screen and (prefers-color-scheme: "
      "dark){{:root:not([data-theme=\"light\"]){{{}}}}}\n",
      light, dark);
}

// {"roles": {"forward": [light, dark]}, "series": [[light, dark]...], "loads": [...]}
std::string palette_json() {
  const auto pair = [](Colour colour) { return Json{colour.light, colour.dark}; };
  Json all = Json::object();
  for (std::size_t i = 0; i < kColourRoles; ++i) {
    const auto role = static_cast<ColourRole>(i);
    all["roles"][std::string(name_of(role))] = pair(colour_of(role));
  }
  for (std::size_t i = 0; i < kSeriesColours; ++i) all["series"].push_back(pair(series_colour(i)));
  for (const std::string_view load : load_scale()) all["loads"].push_back(load);
  return script_json(all);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  return boost::algorithm::replace_all_copy(xml_escaped(text), "'", "&#39;");
}

HtmlPage::HtmlPage(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void HtmlPage::close_section() {
  if (in_section_) body_ += "</section>\n";
  in_section_ = false;
}

void HtmlPage::section(std::string_view id, std::string_view heading) {
  close_section();
  contents_ +=
      fmt::format("<li><a href=\"#{}\">{}</a></li>\n", html_escaped(id), html_escaped(heading));
  body_ += fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n"
      "<h2 id=\"{0}-heading\">{1}</h2>\n",
      html_escaped(id), html_escaped(heading));
  in_section_ = true;
}

void HtmlPage::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", html_escaped(text));
}

void HtmlPage::list(const std::vector<std::string>& items) {
  if (items.empty()) return;
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += fmt::format("<li>{}</li>\n", html_escaped(item));
  body_ += "</ul>\n";
}

void HtmlPage::command(std::string_view text) {
  body_ += fmt::format("<pre tabindex=\"0\"><code>{}</code></pre>\n", html_escaped(text));
}

void HtmlPage::facts(const std::vector<PageFact>& facts) {
  body_ += "<dl class=\"facts\">\n";
  for (const PageFact& fact : facts) {
    body_ +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd>", html_escaped(fact.name), shown_html(fact.shown));
    if (!fact.remark.empty()) {
      body_ += fmt::format("<dd class=\"remark\">{}</dd>", html_escaped(fact.remark));
    }
    body_ += "</div>\n";
  }
  body_ += "</dl>\n";
}

void HtmlPage::table(const PageTable& table) {
  body_ += table_html(table);
}

void HtmlPage::figure(PageFigure figure) {
  body_ += fmt::format(
      "<figure id=\"figure-{0}\">\n"
      "<div class=\"chart\" data-figure=\"{0}\" data-kind=\"{1}\" tabindex=\"0\" role=\"img\" "
      "aria-label=\"{2}\"></div>\n<figcaption>{3}</figcaption>\n{4}</figure>\n",
      html_escaped(figure.id), html_escaped(figure.kind), html_escaped(figure.description),
      html_escaped(figure.caption), figure.table ? table_html(*figure.table) : "");
  figures_[figure.id] = std::move(figure.data);
}

void HtmlPage::result(const Json& result) {
  result_ = script_json(result);
}

std::string HtmlPage::text() const {
  const PageAssets& assets = page_assets();
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'sha256-{}' 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{} - stepsim</title>\n",
      assets.charts_hash, assets.script_hash, html_escaped(title_));
  html += fmt::format("<style>{}{}</style>\n</head>\n<body>\n", palette_css(), assets.style);
  html += "<a class=\"skip\" href=\"#main\">Skip to the report</a>\n";
  html += fmt::format("<header>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n</header>\n",
                      html_escaped(title_), html_escaped(subtitle_));
  html += fmt::format("<nav aria-label=\"Sections\"><ul>\n{}</ul></nav>\n", contents_);
  html +=
      "<noscript><p class=\"note\">Charts need JavaScript, which is off. The tables hold the "
      "numbers.</p></noscript>\n<main id=\"main\">\n";
  html += body_;
  html += in_section_ ? "</section>\n</main>\n" : "</main>\n";
  html += fmt::format(
      "<footer>\n<p>Made by stepsim. Charts by Apache ECharts {}, under the Apache License "
      "2.0.</p>\n<details><summary>Licence of Apache ECharts</summary><pre "
      "tabindex=\"0\">{}</pre></details>\n</footer>\n<div id=\"said\" class=\"said\" "
      "role=\"status\" aria-live=\"polite\"></div>\n",
      html_escaped(assets.charts_version), html_escaped(assets.charts_licence));
  const auto data = [&](std::string_view id, const std::string& json) {
    html += fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, json);
  };
  if (!result_.empty()) data("result", result_);
  data("figures", script_json(figures_));
  data("palette", palette_json());
  html += "<script>";
  html += assets.charts;
  html += "</script>\n<script>";
  html += assets.script;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace stepsim
