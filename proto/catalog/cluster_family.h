// A cluster file with `sizes` stands for a family of clusters, named by their size:
//
//   dgx-h100-512   512 chips: the number of nodes is chips / chips_per_count of the file
//   v5p-4x4x8      the axes of a torus; which of them wrap is a rule of the file (v5p: all, if all
//                  sizes are multiples of 4, whole cubes; v5e: those of 16)
//   v5p-128        the same slice: the most compact shape of so many chips
//   gb200-nvl72-576, multislice-v5p-2x4x4x4, multislice-v5p-2x64
//                  composed clusters: chips, or the number of tori and their axes or chips

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/catalog/catalog.h"

namespace stepsim {

// Returns the sizes that the file lists; empty if it is no family.
std::vector<std::string> listed_sizes(const SourceText& file);

// Describes every size of the family: "a multiple of 8 chips, up to 16384". REQUIRES:
// listed_sizes(file) is not empty.
std::string accepted_sizes(const SourceText& file);

// Returns the member of that size as protobuf text, or why there is none. REQUIRES:
// listed_sizes(file) is not empty.
CatalogAnswer sized_cluster(const SourceText& file, const std::string& family,
                            std::string_view size);

}  // namespace stepsim
