#include "serve/log_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serve/log_line.h"

namespace weir::serve {
namespace {

constexpr Duration kRepeatPeriod = 10s;

}  // namespace

void LogQueue::Offer(LogLevel level, std::string_view message, std::string_view time, Instant now) {
  std::string text = LogText(message);
  const bool repeats = told_at_ && now - *told_at_ < kRepeatPeriod && level == last_level_ && text == last_;
  if (repeats) {
    ++repeats_;
    return;
  }
  TellRepeats(time);
  if (!Push(LogLine(time, level, text))) return;
  last_level_ = level;
  last_ = std::move(text);
  told_at_ = now;
}

LogQueue::Chunk LogQueue::Take(std::string_view time, Instant now) {
  if (due() && *due() <= now) {
    TellRepeats(time);
    told_at_.reset();
  }
  Chunk chunk;
  while (!lines_.empty() && (chunk.text.empty() || chunk.text.size() + lines_.front().size() <= kMaxChunk)) {
    bytes_ -= lines_.front().size();
    chunk.text += lines_.front();
    ++chunk.lines;
    lines_.pop_front();
  }
  if (chunk.lines == 0 || !lines_.empty() || untold_ == 0) return chunk;
  chunk.dropped_lines = std::exchange(untold_, 0);
  const std::string why = reason_.empty() ? "they came faster than they were read" : reason_;
  chunk.text += LogLine(time, LogLevel::kWarning,
                        fmt::format("{} lines of this log were dropped: {}", chunk.dropped_lines, why));
  reason_.clear();
  return chunk;
}

void LogQueue::Lost(const Chunk& chunk, uint64_t written, std::string_view reason) {
  const uint64_t lost = chunk.lines - std::min(chunk.lines, written);
  dropped_ += lost;
  untold_ += lost;
  if (written <= chunk.lines) untold_ += chunk.dropped_lines;
  reason_ = reason;
}

void LogQueue::CountDropped() {
  ++dropped_;
  ++untold_;
}

std::optional<Instant> LogQueue::due() const {
  if (repeats_ == 0 || !told_at_) return std::nullopt;
  return *told_at_ + kRepeatPeriod;
}

bool LogQueue::Push(std::string line) {
  if (lines_.size() < options_.max_lines && bytes_ + line.size() <= options_.max_bytes) {
    bytes_ += line.size();
    lines_.push_back(std::move(line));
    return true;
  }
  CountDropped();
  told_at_.reset();
  return false;
}

void LogQueue::TellRepeats(std::string_view time) {
  const uint64_t repeats = std::exchange(repeats_, 0);
  if (repeats == 0) return;
  Push(LogLine(time, last_level_, fmt::format("the message before came {} more times", repeats)));
}

}  // namespace weir::serve
