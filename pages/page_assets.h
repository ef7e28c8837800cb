// PageAssets are the files of this folder that every page holds: the style, the script, and Apache
// ECharts, which draws the charts. They are built into the binary. Where the build found no ECharts
// there are no pages: `charts` is empty.

#pragma once

#include <string_view>

namespace stepsim {

struct PageAssets {
  std::string_view style;
  std::string_view script;
  std::string_view script_hash;  // base64 of the SHA-256 of `script`, as browsers check it
  std::string_view charts;       // echarts.min.js
  std::string_view charts_hash;
  std::string_view charts_version;  // "5.6.0"
  std::string_view charts_licence;  // its LICENSE and NOTICE
};

const PageAssets& page_assets();

// Returns whether pages can be made.
bool has_charts();

}  // namespace stepsim
