// The files under catalog/ as the build put them into the binary (catalog/embed.cmake). Their
// readers know what they mean: proto/catalog/catalog.h, and books/formulas of formulas.

#pragma once

#include <span>
#include <string_view>

namespace stepsim {

struct CatalogFile {
  std::string_view kind;       // the folder: "models"
  std::string_view name;       // without the extension: "llama3-70b"
  std::string_view extension;  // ".textproto"
  std::string_view text;
};

// In order of kind and name.
std::span<const CatalogFile> catalog_files();

}  // namespace stepsim
