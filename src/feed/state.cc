#include "feed/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fields.h"
#include "base/json.h"

namespace weir::feed {

namespace {

constexpr int64_t kVersion = 1;
constexpr const char* kVersionKey = "weir_feed_state";

bool IsHash(const std::string& text, size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

template <typename F>
void Describe(F& fields, Described<F, FeedState>& state) {
  fields("set", state.set);
  fields("recipe", state.recipe);
  fields("seed", state.seed);
  fields("epoch", state.epoch);
  fields("position", state.position);
}

std::string FormatState(const FeedState& state) {
  Json json{{kVersionKey, kVersion}};
  json.update(FieldsToJson(state));
  return DumpJson(json);
}

Result<FeedState> ParseState(std::string_view text) {
  if (text.size() > kMostStateBytes)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("a feed's state of {} bytes: it has at most {}", text.size(), kMostStateBytes));
  const Json json = TRY_CONTEXT(ParseJson(text), "a feed's state");
  const auto version = json.is_object() ? json.find(kVersionKey) : json.end();
  if (!json.is_object() || version == json.end() || !version->is_number_integer())
    return Fail(ErrorCode::kCorrupt, fmt::format("a feed's state: key \"{}\" is missing", kVersionKey));
  if (*version != kVersion) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("a feed's state of version {}: this program reads version {}; "
                            "resume with the program that wrote it",
                            DumpJson(*version), kVersion));
  }
  FeedState state = TRY_CONTEXT(FieldsFromJson<FeedState>(json), "a feed's state");
  if (!IsHash(state.set, 32) || !IsHash(state.recipe, 16))
    return Fail(ErrorCode::kCorrupt, "a feed's state: a hash is not one");
  if (state.epoch < 0 || state.position < 0)
    return Fail(ErrorCode::kCorrupt, "a feed's state: epoch and position are at least 0");
  return state;
}

Status CheckState(const FeedState& state, const FeedState& own, int64_t positions) {
  const auto refuse = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  if (state.set != own.set) {
    return refuse(
        fmt::format("the state is of another set ({} and not {}): open the set it was saved with, or begin "
                    "anew without it",
                    state.set, own.set));
  }
  if (state.recipe != own.recipe) {
    return refuse(
        "the state was saved with another sampler or augmentation: use the same ones, or begin anew "
        "without it");
  }
  if (state.seed != own.seed)
    return refuse(
        fmt::format("the state was saved with seed {} and not {}: use that seed", state.seed, own.seed));
  if (state.position > positions) {
    return refuse(
        fmt::format("the state stands at position {} of an epoch of {}", state.position, positions));
  }
  return {};
}

}  // namespace weir::feed
