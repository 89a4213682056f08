#include "prepare/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weir::prepare {
namespace {

constexpr int64_t kMaxParts = 1'000'000;

// One that 64 bits do not hold is one too many.
std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error == std::errc::invalid_argument || end != text.data() + text.size())
    return std::nullopt;
  return error == std::errc() ? number : kMaxParts + 1;
}

Result<dataset::Part> Checked(int64_t index, int64_t count, std::string_view what) {
  if (count >= 1 && count <= kMaxParts && index >= 1 && index <= count) return dataset::Part{index, count};
  if (count > kMaxParts)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: more than {} parts: give fewer", what, kMaxParts));
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: part {} of {} cannot be: parts are numbered from 1", what, index, count));
}

// Returns the number in the variable `name`; nullopt if it is not set or not a number.
std::optional<int64_t> Variable(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  return text ? NumberIn(*text) : std::nullopt;
}

Result<dataset::Part> FromEnvironment(std::optional<int64_t> count, const Environment& environment) {
  const auto id = Variable(environment, "SLURM_ARRAY_TASK_ID");
  const auto completion = Variable(environment, "JOB_COMPLETION_INDEX");
  if (id) {
    const int64_t low = Variable(environment, "SLURM_ARRAY_TASK_MIN").value_or(1);
    const int64_t step = std::max<int64_t>(1, Variable(environment, "SLURM_ARRAY_TASK_STEP").value_or(1));
    if (!count) count = Variable(environment, "SLURM_ARRAY_TASK_COUNT");
    if (count) return Checked((*id - low) / step + 1, *count, "--part auto, of Slurm's array");
  } else if (completion && count) {
    return Checked(*completion + 1, *count, "--part auto, of Kubernetes' completion index");
  }
  if (id || completion) {
    return Fail(ErrorCode::kInvalidArgument,
                "--part auto: the environment does not tell of how many parts; say --part auto/N");
  }
  return Fail(ErrorCode::kInvalidArgument,
              "--part auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; say --part I/N");
}

}  // namespace

Result<dataset::Part> ParsePart(std::string_view text, const Environment& environment) {
  const size_t slash = text.find('/');
  const std::string_view index = text.substr(0, slash);
  std::optional<int64_t> count;
  if (slash != text.npos) count = NumberIn(text.substr(slash + 1));
  const bool count_is_good = slash == text.npos || count;
  if (index == "auto" && count_is_good) return FromEnvironment(count, environment);
  const std::optional<int64_t> number = NumberIn(index);
  if (!number || !count) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--part {}: wants I/N, auto or auto/N", text));
  }
  return Checked(*number, *count, fmt::format("--part {}", text));
}

Range RangeOf(const dataset::Part& part, int64_t inputs) {
  // Without a product that could overflow: the first `longer` parts have one more.
  const int64_t size = inputs / part.count, longer = inputs % part.count;
  const auto begin = [&](int64_t index) { return index * size + std::min(index, longer); };
  return {begin(part.index - 1), begin(part.index)};
}

std::string PartFolder(const dataset::Part& part) {
  return fmt::format("part-{}-of-{}", part.index, part.count);
}

}  // namespace weir::prepare
