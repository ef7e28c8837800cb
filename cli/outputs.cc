#include "cli/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "cli/session/interrupts.h"
#include "cli/session/session.h"
#include "cli/session/standard_output.h"

namespace stepsim {

// Runs `action` and returns whether it wrote what it should.
template <typename Action>
bool Outputs::attempt(const std::string& name, Action action) {
  try {
    action();
    return true;
  } catch (const NoReader&) {
    has_reader_ = false;
  } catch (const OutputError& error) {
    failed_.push_back(error.problem);
  } catch (const std::bad_alloc&) {
    failed_.push_back({name, "can't be written: out of memory"});
  }
  return false;
}

void Outputs::write(const std::string& path, const std::function<void(OutputFile&)>& fill) {
  if (path.empty() || path == "-") return;
  attempt(path, [&] {
    auto file = std::make_unique<OutputFile>(path);
    fill(*file);
    file->finish();
    files_.push_back(std::move(file));
  });
}

void Outputs::write(const std::string& path, std::string_view text) {
  if (const auto name = name_in_memory(path)) {
    current_session()->kept[*name] = text;
    return;
  }
  write(path, [text](OutputFile& file) { file.write(text); });
}

void Outputs::commit() {
  const auto each = [this](auto action) {
    std::erase_if(files_, [&](const std::unique_ptr<OutputFile>& file) {
      return !attempt(file->path(), [&] { action(*file); });
    });
  };
  {
    const HeldInterrupts held;
    each([](OutputFile& file) { file.publish(); });
  }
  each([](OutputFile& file) { file.commit(); });
  for (const std::unique_ptr<OutputFile>& file : files_) written_.push_back(file->path());
  files_.clear();
}

void Outputs::print(std::string_view text) {
  if (!is_heard_) return;
  is_heard_ = attempt("standard output", [&] { stepsim::print(text); });
}

std::string Outputs::if_written(const std::string& path) const {
  return std::ranges::count(written_, path) > 0 ? path : "";
}

ExitStatus Outputs::end(ExitStatus status) {
  for (const Problem& problem : failed_) {
    print_error(fmt::format("stepsim: {}: {}\n", problem.field, problem.message));
  }
  if (!failed_.empty()) return ExitStatus::kNoOutput;
  return has_reader_ ? status : ExitStatus::kNoReader;
}

}  // namespace stepsim
