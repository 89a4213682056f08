// Lines of the log that wait to be written. Pure policy: no thread, no clock; the caller passes `now`. Not
// thread-safe; Logger guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "serve/log.h"

namespace weir::serve {

// A bounded queue. A line that finds no room is dropped and counted. A message that is the same as the one
// before it is counted for ten seconds, and not repeated.
class LogQueue {
 public:
  struct Options {
    size_t max_lines = 1024;
    size_t max_bytes = size_t{1} << 20;
  };
  LogQueue() : LogQueue(Options{}) {}
  explicit LogQueue(Options options) : options_(options) {}

  // Takes a message of any length. `time` is the label of its line.
  void Offer(LogLevel level, std::string_view message, std::string_view time, Instant now);

  struct Chunk {
    std::string text;            // whole lines; empty: there is nothing to write
    uint64_t lines = 0;          // but for the one that tells of dropped lines
    uint64_t dropped_lines = 0;  // those that it tells of
  };
  // Takes the oldest lines, together at most kMaxChunk bytes unless a line alone is longer. Behind the last
  // line comes one that says how many were dropped, if any were.
  static constexpr size_t kMaxChunk = 4096;  // a pipe takes it whole
  Chunk Take(std::string_view time, Instant now);

  // Counts the lines of `chunk` behind the first `written`: they could not be written, for this reason.
  void Lost(const Chunk& chunk, uint64_t written, std::string_view reason);
  // Counts a line that could not even be offered.
  void CountDropped();

  bool ready(Instant now) const { return !lines_.empty() || (due() && *due() <= now); }
  // When repetitions will be told that nobody offers a line behind; nothing: there are none.
  std::optional<Instant> due() const;
  // Lines that nobody got, so far.
  uint64_t dropped() const { return dropped_; }

 private:
  bool Push(std::string line);
  void TellRepeats(std::string_view time);

  const Options options_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  uint64_t untold_ = 0;  // of those
  std::string reason_;   // why the last line was lost; empty: there was no room

  // The last message, and when it was told; nothing: the next is told whatever it is.
  LogLevel last_level_ = LogLevel::kInfo;
  std::string last_;
  std::optional<Instant> told_at_;
  uint64_t repeats_ = 0;
};

}  // namespace weir::serve
