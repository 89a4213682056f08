#include "launch/process/launched.h"

#include <fmt/format.h>
#include <string.h>

#include <utility>

#include "base/json.h"

namespace weir::launch {
namespace {

std::string Said(const Launched& launched) {
  std::string words = launched.LastWords();
  while (words.ends_with('\n')) words.pop_back();
  return words.empty() ? "and said nothing" : "its last words:\n" + EscapeBytes(words);
}

}  // namespace

std::string Ending::ToString() const {
  if (signal == 0) return fmt::format("exit status {}", exit_status);
  const char* description = ::sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, description != nullptr ? description : "unknown");
}

LaunchResult<void> WaitUntilReady(Launched& launched, const std::function<Status()>& ready, Instant deadline,
                                  const Clock& clock) {
  const Instant begin = clock.Now();
  std::string missing;
  while (true) {
    if (const auto ending = launched.WaitForEnd(clock.Now())) {
      std::string what = fmt::format("{} ended with {} before it was ready, {}", launched.name(),
                                     ending->ToString(), Said(launched));
      LaunchError error(Error{ErrorCode::kIo, std::move(what)});
      error.ending = ending;
      return std::unexpected(std::move(error));
    }
    const Status asked = ready();
    if (asked) return {};
    if (!asked.error().message.empty()) missing = fmt::format(" ({})", asked.error().message);
    if (clock.Now() >= deadline) {
      return Fail(ErrorCode::kDeadline, fmt::format("{} was not ready within {:.3g} s{}, {}", launched.name(),
                                                    Seconds(clock.Now() - begin), missing, Said(launched)));
    }
    launched.WaitForEnd(clock.Now() + 5ms);
  }
}

LaunchResult<void> WaitUntilReady(Launched& launched, const std::function<bool()>& ready, Instant deadline,
                                  const Clock& clock) {
  const std::function<Status()> ask = [&]() -> Status {
    if (ready()) return {};
    return Fail(ErrorCode::kIo, "");
  };
  return WaitUntilReady(launched, ask, deadline, clock);
}

}  // namespace weir::launch
