#include "cli/console.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/bounded_write.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/secrets.h"
#include "base/thread.h"

namespace weir::cli {
namespace {

// To standard error. A full disk or a reader that is gone keeps no work from being done.
void Say(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }
void SayWithin(const std::string& text) {
  BoundedWriter writer(STDERR_FILENO);
  const Status nobody_to_tell = writer.WriteAll(text, 1s);
  static_cast<void>(nobody_to_tell);
}

}  // namespace

int ExitStatus(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCorrupt:
      return kBadInput;
    case ErrorCode::kCancelled:
      return kInterrupted;
    default:
      return kJobFailed;
  }
}

int FailWith(const Error& error) {
  Say(fmt::format("weir: {}\n", EscapeForTerminal(WithoutSecrets(error.message))));
  return ExitStatus(error);
}

int FailWithin(const Error& error) {
  SayWithin(fmt::format("weir: {}\n", EscapeForTerminal(WithoutSecrets(error.message))));
  return ExitStatus(error);
}

Status CheckOutput(std::string_view flag, const std::string& path) {
  if (path.empty()) return {};
  const Status writable = CheckWritable(path);
  if (writable) return {};
  return Fail(writable.error().code, fmt::format("{} {}", flag, writable.error().message));
}

Console::Console(std::string json, Stdout out, Readers readers)
    : json_(std::move(json)),
      readers_(readers),
      text_(json_ == "-" || out == Stdout::kTaken ? stderr : stdout),
      colour_(::isatty(fileno(text_)) != 0 &&
              std::getenv("NO_COLOR") == nullptr),  // NOLINT(concurrency-mt-unsafe)
      live_(::isatty(STDERR_FILENO) != 0) {}

void Console::Text(const std::string& text) const {
  const Status told_at_the_end = WriteText(text);  // main looks at what stdio knows of it
  static_cast<void>(told_at_the_end);
}

Status Console::WriteText(const std::string& text) const {
  const std::string shown = style_.ForTerminal(WithoutSecrets(text));
  const bool whole = std::fwrite(shown.data(), 1, shown.size(), text_) == shown.size();
  if (std::fflush(text_) == 0 && whole) return {};
  return FailErrno(text_ == stdout ? "standard output" : "standard error", errno);
}

void Console::Note(const std::string& text) const {
  Say(fmt::format("weir: {}\n", EscapeForTerminal(WithoutSecrets(text))));
}

void Console::Progress(double elapsed_s, const std::string& what, int64_t done, int64_t total,
                       const std::string& extra) {
  if (!live_ || elapsed_s < 2) return;
  const double rate = static_cast<double>(done) / elapsed_s;
  const std::string left =
      rate > 0 && total > 0 ? fmt::format(", {:.0f} s left", static_cast<double>(total - done) / rate) : "";
  Say(fmt::format("\r\x1b[K{} {}{}, {}/s{}{}", EscapeForTerminal(what), Count(done),
                  total > 0 ? " of " + Count(total) : "", Short(rate), left, extra));
  std::fflush(stderr);
  progress_shown_ = true;
}

void Console::EndProgress() {
  if (std::exchange(progress_shown_, false)) Say("\r\x1b[K");
}

Status Console::CheckJson() const {
  if (json_.empty() || json_ == "-") return {};
  return CheckOutput("--json", json_);
}

Status Console::Json(const weir::Json& json) const {
  if (json_.empty()) return {};
  const std::string text = DumpJsonIndented(JsonWithoutSecrets(json)) + "\n";
  if (json_ != "-")
    return readers_ == Readers::kOwner ? WritePrivateFile(json_, text) : WriteFileWhole(json_, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return FailErrno("standard output", errno);
  }
  return {};
}

namespace {
sigset_t HeldSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}
}  // namespace

Interrupt::Interrupt() {
  const sigset_t signals = HeldSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = StartThread("signals", [this](std::stop_token ended) { Watch(ended); });
}

Interrupt::~Interrupt() {
  thread_.request_stop();
  thread_.join();
}

void Interrupt::Watch(const std::stop_token& ended) {
  const sigset_t signals = HeldSignals();
  const timespec patience{.tv_sec = 0, .tv_nsec = 50'000'000};
  constexpr Duration kSameRequest = 500ms;  // timeout(1) signals the process and then its group
  const SteadyClock clock;
  Instant first;
  while (!ended.stop_requested()) {
    if (sigtimedwait(&signals, nullptr, &patience) < 0) continue;
    if (stop_.stop_requested() && clock.Now() - first < kSameRequest) continue;
    if (stop_.stop_requested()) ::_exit(kInterrupted);
    first = clock.Now();
    stop_.request_stop();
    SayWithin("\nweir: finishing what has begun; once more to end at once\n");
  }
}

}  // namespace weir::cli
