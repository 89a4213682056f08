#include "launch/process/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "launch/process/spawn.h"

namespace weir::launch {
namespace {

constexpr size_t kMostKept = 16 << 20;  // bytes of one stream

// One of the command's streams, read as it comes.
struct Stream {
  UniqueFd read_end, write_end;
  std::string text;

  Status Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
    read_end = UniqueFd(ends[0]), write_end = UniqueFd(ends[1]);
    return {};
  }
  void ReadSome() {
    char buffer[16384];
    const ssize_t got = ::read(read_end.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      read_end = UniqueFd();
      return;
    }
    text.append(buffer, std::min(static_cast<size_t>(got), kMostKept - text.size()));
  }
};

// Reads both streams until the command has ended and they hold no more, or until `until`: false. What the
// command left running may keep the streams open; they are not waited for.
bool ReadUntilEnd(Stream& out, Stream& err, int end, Instant until, const Clock& clock) {
  bool ended = false;
  while (true) {
    pollfd ready[] = {
        {out.read_end.get(), POLLIN, 0}, {err.read_end.get(), POLLIN, 0}, {ended ? -1 : end, POLLIN, 0}};
    const int count = ::poll(ready, 3, ended ? 0 : PollTimeout(until, clock));
    if (count < 0) continue;  // a signal
    if (count == 0 && ended) return true;
    if (count == 0 && clock.Now() >= until) return false;
    if (ready[0].revents != 0) out.ReadSome();
    if (ready[1].revents != 0) err.ReadSome();
    if (ready[2].revents != 0) ended = true;
    if (ended && !out.read_end.valid() && !err.read_end.valid()) return true;
  }
}

std::string Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return EscapeBytes(text);
}

}  // namespace

Result<Output> RunCommand(const Command& command, const Clock& clock) {
  const Instant until = clock.Now() + command.timeout;
  Stream out, err;
  TRY_STATUS(out.Open());
  TRY_STATUS(err.Open());
  Child child = TRY(Child::Spawn({.arguments = command.arguments,
                                  .environment = command.environment,
                                  .cpus = command.cpus,
                                  .network_namespace = command.network_namespace,
                                  .input = command.input,
                                  .output = out.write_end.get(),
                                  .errors = err.write_end.get(),
                                  .parent_death_signal = SIGKILL}));
  out.write_end = UniqueFd(), err.write_end = UniqueFd();
  if (!ReadUntilEnd(out, err, child.end_descriptor(), until, clock)) {
    child.Kill();
    return Fail(ErrorCode::kDeadline, fmt::format("{} took longer than {:.3g} s and was killed",
                                                  ToShell(command.arguments), Seconds(command.timeout)));
  }
  return Output{.ending = child.Kill(), .out = std::move(out.text), .err = std::move(err.text)};
}

Result<std::string> RunWell(const Command& command, const Clock& clock) {
  Output output = TRY(RunCommand(command, clock));
  if (output.ending == Ending{}) return std::move(output.out);
  return Fail(ErrorCode::kIo, fmt::format("{}: {}: {}", ToShell(command.arguments), output.ending.ToString(),
                                          Trimmed(output.err.empty() ? output.out : output.err)));
}

std::string ToShell(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  std::string text;
  for (const std::string& argument : arguments) {
    if (!text.empty()) text += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace weir::launch
