#include "feed/cache.h"

#include <atomic>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace weir::feed {
namespace {

class CachedSource final : public Source {
 public:
  CachedSource(std::shared_ptr<const Source> source, uint64_t max_bytes)
      : source_(std::move(source)), left_(static_cast<int64_t>(max_bytes)) {}

  int64_t size() const override { return source_->size(); }
  const std::vector<std::string>& classes() const override { return source_->classes(); }
  int32_t Label(int64_t sample) const override { return source_->Label(sample); }
  std::string Name(int64_t sample) const override { return source_->Name(sample); }
  std::optional<RawShape> raw() const override { return source_->raw(); }
  const std::string& hash() const override { return source_->hash(); }

  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    Part& part = parts_[static_cast<size_t>(sample) % kParts];
    {
      const MutexLock lock(part.mutex);
      // Kept bytes never move nor end before the source, so they may be used without the lock.
      if (const auto found = part.kept.find(sample); found != part.kept.end())
        return std::span<const std::byte>(found->second);
    }
    const std::span<const std::byte> bytes = TRY(source_->Read(sample, buffer));
    const int64_t cost = std::ssize(bytes) + kOverhead;
    if (left_.fetch_sub(cost) < cost) {
      left_.fetch_add(cost);
      return bytes;
    }
    const MutexLock lock(part.mutex);
    const auto [at, is_new] = part.kept.try_emplace(sample, bytes.begin(), bytes.end());
    if (!is_new) left_.fetch_add(cost);  // another thread read it at the same time
    return std::span<const std::byte>(at->second);
  }

 private:
  static constexpr size_t kParts = 64;       // each with a lock of its own
  static constexpr int64_t kOverhead = 128;  // of the map and the allocator, for each sample

  struct Part {
    Mutex mutex;
    std::unordered_map<int64_t, std::vector<std::byte>> kept GUARDED_BY(mutex);
  };

  const std::shared_ptr<const Source> source_;
  mutable std::atomic<int64_t> left_;
  mutable std::vector<Part> parts_ = std::vector<Part>(kParts);
};

}  // namespace

std::shared_ptr<const Source> CacheInMemory(std::shared_ptr<const Source> source, uint64_t max_bytes) {
  return std::make_shared<CachedSource>(std::move(source), max_bytes);
}

}  // namespace weir::feed
