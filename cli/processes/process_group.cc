#include "cli/processes/process_group.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "cli/processes/started_processes.h"
#include "cli/session/session.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

constexpr const char* kModule = "stepsim_mpi.so";
constexpr int kControl = 0;  // the lane of jobs, of answers to them, and of the end
// First letters of what goes over it.
constexpr char kJob = 'J';
constexpr char kReady = 'R';
constexpr char kProblem = 'P';
constexpr char kEnd = 'E';

// The module lies beside the program, or where it is installed.
std::string module_path() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& path : {program / kModule, program.parent_path() / "lib/stepsim" / kModule}) {
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  return "";
}

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError({{"mpirun", "started several processes, but " + why +
                                    "; use --shard, or a stepsim that was built where MPI is "
                                    "installed (docs/sweep.md)"}});
}

using OpenPort = MessagePort* (*)();

OpenPort load_module() {
  const std::string path = module_path();
  if (path.empty()) refuse("this stepsim was built without MPI: it has no " + std::string(kModule));
  // MPI loads further modules that look for its own symbols.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const open = module == nullptr ? nullptr : dlsym(module, kOpenPort);
  if (open == nullptr) refuse(path + " can't be used: " + std::string(dlerror()));
  return reinterpret_cast<OpenPort>(open);
}

}  // namespace

std::unique_ptr<ProcessGroup> ProcessGroup::join() {
  if (current_session() != nullptr || started_processes() < 2) return nullptr;
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(load_module()));
}

ProcessGroup::ProcessGroup(OpenPort open) : carrier_([this, open] { carry(open); }) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return is_open_; });
}

ProcessGroup::~ProcessGroup() {
  if (is_first()) {
    for (std::size_t process = 1; process < processes_; ++process) {
      send({process, kControl}, {kEnd});
    }
  }
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  carrier_.join();
}

void ProcessGroup::carry(OpenPort open) {
  const std::unique_ptr<MessagePort> port(open());
  {
    const std::lock_guard lock(mutex_);
    process_ = port->process();
    processes_ = port->processes();
    is_open_ = true;
  }
  arrived_.notify_all();
  while (true) {
    const bool has_sent = send_waiting(*port);
    const bool has_received = receive_waiting(*port);
    if (has_sent || has_received) continue;
    {
      const std::lock_guard lock(mutex_);
      if (is_closing_ && outgoing_.empty()) return;
    }
    constexpr std::chrono::microseconds kPause(500);
    std::this_thread::sleep_for(kPause);
  }
}

bool ProcessGroup::send_waiting(MessagePort& port) {
  std::vector<std::pair<Address, std::string>> texts;
  {
    const std::lock_guard lock(mutex_);
    texts.swap(outgoing_);
  }
  for (auto& [to, text] : texts) port.send(to.process, to.lane, std::move(text));
  return !texts.empty();
}

bool ProcessGroup::receive_waiting(MessagePort& port) {
  bool has_received = false;
  while (std::optional<PortMessage> message = port.receive()) {
    has_received = true;
    const std::lock_guard lock(mutex_);
    has_ended_ = has_ended_ || (message->lane == kControl && message->text.front() == kEnd);
    incoming_[{message->process, message->lane}].push_back(std::move(message->text));
    arrived_.notify_all();
  }
  return has_received;
}

void ProcessGroup::send(Address to, std::string text) {
  const std::lock_guard lock(mutex_);
  outgoing_.emplace_back(to, std::move(text));
}

std::string ProcessGroup::receive(Address from) {
  std::unique_lock lock(mutex_);
  std::deque<std::string>& texts = incoming_[from];
  arrived_.wait(lock, [&] { return !texts.empty() || has_ended_; });
  if (texts.empty()) return "";
  std::string text = std::move(texts.front());
  texts.pop_front();
  return text;
}

std::size_t ProcessGroup::start(const std::string& job) {
  for (std::size_t process = 1; process < processes_; ++process) {
    send({process, kControl}, kJob + job);
  }
  std::vector<Problem> problems;
  for (std::size_t process = 1; process < processes_; ++process) {
    const std::string text = receive({process, kControl});
    const std::string rest = text.substr(1);
    if (text.front() == kReady) {
      const int threads = number_in<int>(rest).value_or(1);
      for (int lane = 1; lane <= threads; ++lane) places_.push_back({process, lane});
    } else {
      problems.push_back({fmt::format("process {}", process), rest});
    }
  }
  throw_if_any(std::move(problems));
  return places_.size();
}

std::string ProcessGroup::ask(std::size_t place, const std::string& question) {
  send(places_.at(place), question);
  return receive(places_.at(place));
}

void ProcessGroup::answer(const std::function<Answerers(const std::string&)>& prepare) {
  const std::string job = receive({0, kControl});
  if (job.front() == kEnd) return;
  Answerers answerers;
  try {
    answerers = prepare(job.substr(1));
    send({0, kControl}, kReady + std::to_string(answerers.threads.size()));
  } catch (const ConfigError& error) {
    std::string text;
    for (const Problem& problem : error.problems()) {
      text += (text.empty() ? "" : "; ") + problem.field + ": " + problem.message;
    }
    send({0, kControl}, kProblem + text);
    receive({0, kControl});
    return;
  }
  const std::size_t threads = answerers.threads.size();
  for_each_in_parallel(threads, threads, [&](std::size_t thread) noexcept {
    const Address first{0, static_cast<int>(thread) + 1};
    for (std::string text = receive(first); !text.empty(); text = receive(first)) {
      send(first, answerers.threads[thread](text));
    }
  });
}

}  // namespace stepsim
