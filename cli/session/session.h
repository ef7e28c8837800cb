// Session is one call of a subcommand by a program that is not the command line, such as Python
// (cli/call.h). Nothing is printed while a thread is in a session: what would be is kept, and so
// are outputs to a path that begins with "memory:". Progress is not shown. The caller is asked now
// and then whether the work goes on.
//
//   Session session;
//   {
//     const InSession here(session);
//     subcommand.run({"--json=memory:json", ..});   // prints into session.output
//   }
//   session.kept["json"]
//
// It holds for the thread that called, not for the threads that the work starts: those print
// nothing, and ask the caller only where they were told of the session. Several threads can be in
// sessions of their own.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace stepsim {

struct Session {
  std::string output{};                       // what would be on standard output
  std::string errors{};                       // and on standard error
  std::map<std::string, std::string> kept{};  // by the name behind "memory:"
  // Asked by any thread, several at once. May be empty: it does.
  std::function<bool()> goes_on{};
  // Takes the parts of a result that are there before the rest, each as JSON: the points of a
  // sweep, in order. Called by one thread at a time, of any thread. May be empty.
  std::function<void(const std::string&)> part{};
  std::atomic<bool> stopped = false;  // goes_on() has said no
};

// While one lives, this thread is in the session.
class InSession {
 public:
  explicit InSession(Session& session);
  ~InSession();
  InSession(const InSession&) = delete;
  InSession& operator=(const InSession&) = delete;

 private:
  Session* const before_;
};

// Returns the session that this thread is in; nullptr: none, as on the command line.
Session* current_session() noexcept;

// The caller of a session has said that the work ends.
struct SessionStopped {};

// Returns whether the work of a session goes on, as its caller says. Without a session it does.
// Cheap enough to be called for every progress.
bool goes_on(Session* session);

// Lets simulations in other threads ask, too: the `progress` of ExperimentOptions, whose context is
// the session. asks_session() is the same for the options of searches and tables, and empty without
// a session; it is of the session that this thread is in.
bool session_progress(void* session, Time now, std::uint64_t ops_done, std::uint64_t ops_total);
std::function<bool()> asks_session();

// Returns the name in "memory:NAME" if this thread is in a session.
std::optional<std::string> name_in_memory(std::string_view path);

}  // namespace stepsim
