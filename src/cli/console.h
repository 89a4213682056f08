// Talking to the person and to the program that called: text, progress, JSON, errors and exit status.
#pragma once

#include <cstdio>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/count.h"
#include "base/error.h"
#include "base/json.h"
#include "base/named_file.h"
#include "base/text_style.h"

namespace weir::cli {

constexpr int kDone = 0, kJobFailed = 1, kBadInput = 2, kClaimInvalid = 3, kInterrupted = 130;

// 2 for what the user can mend in the command or its input, 1 for the rest.
int ExitStatus(const Error& error);
// Says the error on standard error, and gives its exit status.
int FailWith(const Error& error);
// The same where nobody may read standard error: gives up after a second.
int FailWithin(const Error& error);

// Whether what `flag` names can be written, told before the work; an empty `path` is none. As CheckWritable
// of base/file.h, with the flag in front.
Status CheckOutput(std::string_view flag, const std::string& path);

// Where text goes, without the secrets in it: standard output, or standard error when standard output is
// taken by "--json -". Prints as the terminal can: colour and width only where it is one. Control characters
// in what it is given, which may be words of others, are printed as "\xNN".
class Console {
 public:
  // `json`: a file, "-" for standard output, or empty. `readers`: of that file.
  enum class Readers { kAll, kOwner };  // kOwner: personal data, mode 0600
  enum class Stdout { kFree, kTaken };  // taken: text goes to standard error also without "--json -"
  explicit Console(std::string json, Stdout out = Stdout::kFree, Readers readers = Readers::kAll);

  void Text(const std::string& text) const;          // with its newlines
  Status WriteText(const std::string& text) const;   // the same; kIo where it could not be written
  void Note(const std::string& text) const;          // one line to standard error
  const TextStyle& style() const { return style_; }  // for Text
  std::string Bold(const std::string& text) const { return style_.Bold(text); }

  // A line that is written over, on standard error where that is a terminal, from two seconds on.
  void Progress(double elapsed_s, const std::string& what, int64_t done, int64_t total,
                const std::string& extra);
  void EndProgress();

  // Tells before the work whether --json names a place that can be written.
  Status CheckJson() const;
  // Writes where --json said; nothing without --json.
  Status Json(const weir::Json& json) const;

 private:
  const std::string json_;
  const Readers readers_;
  std::FILE* const text_;
  const bool colour_;
  const TextStyle style_{colour_};
  const bool live_;
  bool progress_shown_ = false;
};

// From now until destroyed, Ctrl-C and SIGTERM ask `token()` to stop once; a second one ends the program at
// once with status 130. Make it before any thread starts: threads inherit that the signals are not theirs.
// Taken on a thread named "signals".
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Watch(const std::stop_token& ended);

  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace weir::cli
