#include "feed/cache.h"

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace weir::feed {
namespace {

class MemoryCache final : public SampleCache {
 public:
  explicit MemoryCache(uint64_t max_bytes) : left_(static_cast<int64_t>(max_bytes)) {}

  std::optional<Kept> Find(uint64_t key, ReadBuffer&) override {
    Part& part = PartOf(key);
    const MutexLock lock(part.mutex);
    const auto found = part.kept.find(key);
    if (found == part.kept.end()) return std::nullopt;
    // Kept bytes never move nor end before the cache, so they may be used without the lock.
    return Kept{found->second.pixels, found->second.bytes};
  }
  bool Has(uint64_t key) override {
    Part& part = PartOf(key);
    const MutexLock lock(part.mutex);
    return part.kept.contains(key);
  }
  void Keep(uint64_t key, const Kept& kept) override {
    const int64_t cost = std::ssize(kept.bytes) + kOverhead;
    if (left_.fetch_sub(cost) < cost) {
      left_.fetch_add(cost);
      return;
    }
    Part& part = PartOf(key);
    const MutexLock lock(part.mutex);
    const auto [at, is_new] = part.kept.try_emplace(key);
    if (is_new) {
      at->second.pixels = kept.pixels;
      at->second.bytes.assign(kept.bytes.begin(), kept.bytes.end());
    } else {
      left_.fetch_add(cost);  // another thread made it at the same time
    }
  }

 private:
  static constexpr size_t kParts = 64;       // each with a lock of its own
  static constexpr int64_t kOverhead = 160;  // of the map and the allocator, for each sample

  struct OwnKept {
    RawShape pixels{0, 0, 0};
    std::vector<std::byte> bytes;
  };
  struct Part {
    Mutex mutex;
    std::unordered_map<uint64_t, OwnKept> kept GUARDED_BY(mutex);
  };
  Part& PartOf(uint64_t key) { return parts_[key % kParts]; }

  std::atomic<int64_t> left_;
  std::vector<Part> parts_ = std::vector<Part>(kParts);
};

}  // namespace

std::shared_ptr<SampleCache> MakeMemoryCache(uint64_t max_bytes) {
  return std::make_shared<MemoryCache>(max_bytes);
}

Result<std::shared_ptr<SampleCache>> OpenCache(const CacheOptions& options) {
  if (options.bytes == 0) {
    if (options.folder.empty() && !options.decoded) return nullptr;
    return Fail(ErrorCode::kInvalidArgument,
                "a cache of 0 bytes keeps nothing: say how many bytes it may take");
  }
  if (options.folder.empty()) return MakeMemoryCache(options.bytes);
  return OpenDiskCache(options.folder, options.bytes);
}

}  // namespace weir::feed
