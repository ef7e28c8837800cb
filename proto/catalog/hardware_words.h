// The words of a name that a table gives a chip or a machine, so that "NVIDIA H100-SXM5 80GB HBM3",
// "8x H100 SXM" and "HGX H100" are one chip.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Returns the words that tell chips apart, in lower case, sorted, each once: "A100-SXM4-40GB" is
// 40gb, a100, sxm. Words of makers, product lines, architectures, clouds and kinds of memory are
// left out, and so are counts ("8x"), watts, and numbers alone unless they belong to a name of
// several words ("RTX 4090" is rtx4090, "TPU v5 lite" v5lite). Cost: O(length).
std::vector<std::string> hardware_words(std::string_view name);

// True of a word that names a chip or a machine rather than what it has: "h100", "v5e", "trillium";
// not "80gb", "sxm" or "pcie".
bool names_hardware(std::string_view word);

}  // namespace stepsim
