# Writes OUTPUT, the C++ text of the files of SOURCE that pages hold, and of ECharts in the folder
# ECHARTS (empty: none).

# Sets `variable` to the base64 of the SHA-256 of a file.
function(hash_of file variable)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  file(SHA256 ${file} hex)
  string(APPEND hex "0000")  # 34 bytes: 45 digits of base64 and a little more
  set(text "")
  foreach(digit RANGE 42)
    math(EXPR bit "6 * ${digit}")
    math(EXPR nibble "${bit} / 4")
    string(SUBSTRING ${hex} ${nibble} 3 window)
    math(EXPR value "(0x${window} >> (6 - ${bit} % 4)) & 63")
    string(SUBSTRING ${alphabet} ${value} 1 character)
    string(APPEND text ${character})
  endforeach()
  set(${variable} "${text}=" PARENT_SCOPE)
endfunction()

# Sets `variable` to a C++ text of a file. A page holds it between tags, so it must not close them.
function(literal_of file variable)
  file(READ ${file} content)
  if(content MATCHES "</(script|style)" OR content MATCHES "\\)pages\"")
    message(FATAL_ERROR "${file}: can't stand in a page")
  endif()
  set(${variable} "R\"pages(${content})pages\"sv" PARENT_SCOPE)
endfunction()

literal_of(${SOURCE}/page.css style)
literal_of(${SOURCE}/page.js script)
hash_of(${SOURCE}/page.js script_hash)
set(charts "{}")
set(licence "{}")
set(charts_hash "")
set(version "")
if(ECHARTS)
  literal_of(${ECHARTS}/dist/echarts.min.js charts)
  hash_of(${ECHARTS}/dist/echarts.min.js charts_hash)
  file(READ ${ECHARTS}/LICENSE licence_text)
  file(READ ${ECHARTS}/NOTICE notice_text)
  set(licence "R\"pages(${notice_text}\n${licence_text})pages\"sv")
  file(READ ${ECHARTS}/package.json package)
  string(JSON version GET "${package}" version)
endif()
file(WRITE ${OUTPUT} "// Generated from pages/ by pages/embed.cmake.
#include \"pages/page_assets.h\"

namespace stepsim {

const PageAssets& page_assets() {
  using namespace std::string_view_literals;
  static constexpr PageAssets kAssets = {
      .style = ${style},
      .script = ${script},
      .script_hash = \"${script_hash}\"sv,
      .charts = ${charts},
      .charts_hash = \"${charts_hash}\"sv,
      .charts_version = \"${version}\"sv,
      .charts_licence = ${licence},
  };
  return kAssets;
}

bool has_charts() {
  return !page_assets().charts.empty();
}

}  // namespace stepsim
")
