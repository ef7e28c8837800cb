// A library for LD_PRELOAD that makes memory or the system fail under the real program: at the n-th
// allocation, or at the n-th call that reads or writes, for every n of a run. faults_test.py starts
// the program with it and judges what comes out.
//
// The program runs once, and a copy of it (fork) is made for each n. So a failure costs what comes
// after it, not the whole run. A copy shares open files with the original, and the loader's locks
// know it as another thread. Therefore the copies for a window, that is while a file is open or the
// loader works, are made before it and run up to their failure. The last window goes from the
// output that first gets its name, or from the first printed word, to the end.
//
// STEPSIM_FAULTS says what to do: "KIND REPORT ANSWER EVERY OFFSET DENSE".
//   KIND     memory       an allocation fails: malloc() returns null, so new throws bad_alloc
//            memory-gone  that allocation and all after it
//            call         a call fails: a full disk, a broken disk, no descriptor left
//            call-gone    that call and all after it
//            call-part    a call is interrupted (EINTR), or does a part of what it should
//   REPORT   a descriptor: a line "N CALL STATUS" after each copy; CALL is what failed, or "none",
//            and STATUS is that of waitpid()
//   ANSWER   a descriptor: a byte is awaited there after each line
//   EVERY    n is tried if it is at most DENSE, or if n % EVERY is OFFSET
//
// It allocates nothing and uses nothing that does. One thread only. glibc on Linux.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

// What malloc() and the others are in glibc.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* old, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
extern "C" pid_t _Fork();

namespace {

constexpr unsigned kSecondsForACopy = 20;
constexpr long kNever = std::numeric_limits<long>::max();

struct Request {
  char kind[16];
  int report;
  int answer;
  long every;
  long offset;
  long dense;
  bool is_memory;
  bool is_gone;
  bool is_part;
};

// What a copy tells the original.
struct Shared {
  long calls;
  bool has_renamed;
  const char* failed;  // names of functions are at one address in all copies
};

enum class Role { kUnknown, kIdle, kOriginal, kCopy };

// The program has one thread, and these must be there before any constructor runs.
constinit Role role = Role::kUnknown;
constinit Request request{};
constinit Shared* shared = nullptr;
constinit long calls = 0;
constinit long target = kNever;           // in a copy: the call that fails
constinit bool ends_with_window = false;  // in a copy: it only counts calls
constinit long tried = 0;                 // in the original: calls that all have had their copies
constinit int windows = 0;                // nested
constinit std::array<bool, 1024> is_open{};  // by descriptor

[[noreturn]] void give_up(const char* why) {
  syscall(SYS_write, STDERR_FILENO, why, strlen(why));
  syscall(SYS_exit_group, 99);
  __builtin_unreachable();
}

void read_request() {
  role = Role::kIdle;
  const char* text = getenv("STEPSIM_FAULTS");
  if (text == nullptr) return;
  if (sscanf(text, "%15s %d %d %ld %ld %ld", request.kind, &request.report, &request.answer,
             &request.every, &request.offset, &request.dense) != 6) {
    give_up("STEPSIM_FAULTS: wrong\n");
  }
  request.is_memory = strncmp(request.kind, "memory", 6) == 0;
  request.is_gone = strstr(request.kind, "-gone") != nullptr;
  request.is_part = strstr(request.kind, "-part") != nullptr;
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) give_up("no shared memory\n");
  shared = static_cast<Shared*>(page);
  role = Role::kOriginal;
}

bool is_wanted(long call) {
  return call <= request.dense || call % request.every == request.offset;
}

// ---- copies ----

void report(long call, int status) {
  char line[80];
  const int size = snprintf(line, sizeof line, "%ld %s %d\n", call,
                            shared->failed == nullptr ? "none" : shared->failed, status);
  syscall(SYS_write, request.report, line, size);
  char answer = 0;
  if (syscall(SYS_read, request.answer, &answer, 1) != 1) give_up("nobody answers\n");
}

// Returns true in the copy. In the original it returns false once the copy has ended and the answer
// has come.
bool is_copy_for(long call) {
  shared->failed = nullptr;
  const pid_t copy = _Fork();
  if (copy < 0) give_up("no process can be made\n");
  if (copy == 0) {
    role = Role::kCopy;
    target = call;
    alarm(kSecondsForACopy);
    return true;
  }
  int status = 0;
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  report(call, status);
  return false;
}

// Tries every call of the window that begins here. The original ends with the last one.
void try_window(bool is_last) {
  shared->has_renamed = false;
  shared->calls = calls;
  ends_with_window = !is_last;
  if (is_copy_for(kNever)) return;
  ends_with_window = false;
  tried = shared->calls;
  const bool goes_to_the_end = is_last || shared->has_renamed;
  for (long call = calls + 1; call <= tried; ++call) {
    if (is_wanted(call) && is_copy_for(call)) return;
  }
  if (goes_to_the_end) syscall(SYS_exit_group, 0);
}

// Counts a call and returns whether it has to fail.
bool fails(bool is_allocation, const char* name) {
  if (role == Role::kUnknown) read_request();
  if (role == Role::kIdle || is_allocation != request.is_memory) return false;
  ++calls;
  if (role == Role::kOriginal) {
    if (calls <= tried || !is_wanted(calls) || !is_copy_for(calls)) return false;
  }
  shared->calls = calls;
  if (calls < target || (calls > target && !request.is_gone)) return false;
  if (shared->failed == nullptr) shared->failed = name;
  return true;
}

// ---- windows ----

void begin_window() {
  if (windows == 0 && role == Role::kOriginal) try_window(/*is_last=*/false);
  ++windows;
}

void end_window() {
  --windows;
  if (ends_with_window && windows == 0 && !shared->has_renamed) syscall(SYS_exit_group, 0);
}

int opened(long descriptor) {
  if (descriptor < 0) {
    end_window();
  } else {
    is_open.at(static_cast<std::size_t>(descriptor)) = true;
  }
  return static_cast<int>(descriptor);
}

void closed(int descriptor) {
  if (descriptor < 0 || !is_open.at(static_cast<std::size_t>(descriptor))) return;
  is_open.at(static_cast<std::size_t>(descriptor)) = false;
  end_window();
}

void before_writing(int descriptor) {
  const bool is_printed = descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO;
  if (is_printed && role == Role::kOriginal) try_window(/*is_last=*/true);
}

// ---- failures ----

long failed_with(int error) {
  errno = error;
  return -1;
}

bool allocation_fails(const char* name) {
  if (!fails(/*is_allocation=*/true, name)) return false;
  errno = ENOMEM;
  return true;
}

bool call_fails(const char* name) {
  return fails(/*is_allocation=*/false, name);
}

// A transfer of `size` bytes: a failure of it, or only its first half.
template <typename Transfer>
ssize_t transfer(const char* name, int error, std::size_t size, Transfer action) {
  if (!call_fails(name)) return action(size);
  if (!request.is_part) return failed_with(error);
  return size > 1 ? action(size / 2) : failed_with(EINTR);
}

// A call that does all or nothing.
template <typename Action>
long whole(const char* name, int error, Action action) {
  return call_fails(name) && !request.is_part ? failed_with(error) : action();
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  begin_window();
  return opened(whole("open", (flags & O_CREAT) != 0 ? ENOSPC : EMFILE,
                      [&] { return syscall(SYS_openat, folder, path, flags, mode); }));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  return allocation_fails("malloc") ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  return allocation_fails("calloc") ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
  return allocation_fails("realloc") ? nullptr : __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  return allocation_fails("memalign") ? nullptr : __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  *result = memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

// Linux closes the descriptor whatever it returns.
int close(int descriptor) {
  const int result = static_cast<int>(syscall(SYS_close, descriptor));
  const bool has_failed = call_fails("close") && !request.is_part;
  closed(descriptor);
  return has_failed ? static_cast<int>(failed_with(EIO)) : result;
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
  return transfer("read", EIO, size,
                  [&](std::size_t part) { return syscall(SYS_read, descriptor, bytes, part); });
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  before_writing(descriptor);
  // Nobody could be told.
  if (descriptor == STDERR_FILENO) return syscall(SYS_write, descriptor, bytes, size);
  return transfer("write", ENOSPC, size,
                  [&](std::size_t part) { return syscall(SYS_write, descriptor, bytes, part); });
}

int fsync(int descriptor) {
  if (!call_fails("fsync")) return static_cast<int>(syscall(SYS_fsync, descriptor));
  return static_cast<int>(failed_with(request.is_part ? EINTR : EIO));
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (role == Role::kCopy) shared->has_renamed = true;
  return static_cast<int>(whole(
      "rename", EIO, [&] { return syscall(SYS_renameat, from_folder, from, to_folder, to); }));
}

// <fcntl.h> has a struct of this name.
int lock_file(int descriptor, int operation) __asm__("flock");
int lock_file(int descriptor, int operation) {
  return static_cast<int>(
      whole("flock", ENOLCK, [&] { return syscall(SYS_flock, descriptor, operation); }));
}

// Makes the loader load a library.
int backtrace(void** frames, int size) {
  using Backtrace = int(void**, int);
  begin_window();
  const auto real = reinterpret_cast<Backtrace*>(dlsym(RTLD_NEXT, "backtrace"));
  const int count = real(frames, size);
  end_window();
  return count;
}

int fchmod(int descriptor, mode_t mode) {
  return static_cast<int>(
      whole("fchmod", EPERM, [&] { return syscall(SYS_fchmod, descriptor, mode); }));
}
}
