#include "feed/epoch_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <charconv>
#include <memory>

namespace weir::feed {

void EpochHash::Add(int64_t position, int64_t label, std::span<const std::byte> row,
                    std::span<const std::byte> mask) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  thread_local const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  const std::array<int64_t, 2> head{position, label};
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), head.data(), sizeof(head));
  XXH3_128bits_update(state.get(), row.data(), row.size());
  XXH3_128bits_update(state.get(), mask.data(), mask.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  EpochHash one;
  one.high_ = hash.high64;
  one.low_ = hash.low64;
  *this += one;
}

EpochHash& EpochHash::operator+=(const EpochHash& more) {
  low_ += more.low_;
  high_ += more.high_ + (low_ < more.low_ ? 1 : 0);
  return *this;
}

std::string EpochHash::Digest() const { return fmt::format("{:016x}{:016x}", high_, low_); }

Result<EpochHash> EpochHash::FromDigest(std::string_view digest) {
  EpochHash hash;
  const auto read = [&](std::string_view text, uint64_t& value) {
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return fault == std::errc() && end == text.data() + text.size();
  };
  if (digest.size() != 32 || !read(digest.substr(0, 16), hash.high_) || !read(digest.substr(16), hash.low_))
    return Fail(ErrorCode::kCorrupt, "an epoch's hash is not 32 hex digits");
  return hash;
}

}  // namespace weir::feed
