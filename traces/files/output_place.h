// Where an output goes: the file behind a name, what stands in the way of it, and whether two names
// lead to one file.

#pragma once

#include <string>

namespace stepsim {

// Returns the file that `path` leads to through symbolic links, which need not exist. A link to
// itself is returned as it is.
std::string followed(const std::string& path);

// Returns whether `path` exists and is no ordinary file: a device or a pipe, or a folder.
bool is_special(const std::string& path);

// Returns why no file can be made or replaced at `path`, as far as its folder and its name tell; ""
// if nothing is wrong.
std::string trouble_with_place(const std::string& path);

// Returns whether two outputs would be one file: through links of any kind, or because their names
// differ in upper and lower case only, which some file systems don't tell apart. They need not
// exist. Devices such as /dev/null take any number of outputs.
bool is_same_output(const std::string& one, const std::string& other);

// Returns whether both names lead to one ordinary file, which exists.
bool is_one_file(const std::string& path, const std::string& other);

// Returns whether `path` is the file that standard output was redirected to.
bool is_file_of_standard_output(const std::string& path);

}  // namespace stepsim
