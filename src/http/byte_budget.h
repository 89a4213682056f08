// Bytes of requests and answers that may be in memory at once, over all connections of a server.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.h"

namespace weir::http {

// Thread-safe.
class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  explicit ByteBudget(size_t limit) : limit_(limit) {}

  // Bytes that were taken; gives them back when it goes.
  class Share {
   public:
    Share(std::shared_ptr<ByteBudget> budget, size_t size) : budget_(std::move(budget)), size_(size) {}
    Share(Share&&) noexcept = default;
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (budget_) budget_->used_.fetch_sub(size_, std::memory_order_relaxed);
    }
    // So much more; false when it is not to be had now.
    bool Grow(size_t more);

   private:
    std::shared_ptr<ByteBudget> budget_;
    size_t size_;
  };
  // Nothing when they are not to be had now.
  std::optional<Share> Take(size_t size);
  // Charges memory that exists in any case, such as a response: it may pass the limit, and Take fails until
  // it is not.
  Share Charge(size_t size);

  // Memory that counts against the budget for as long as anyone holds a slice of it, so that the byte at
  // `aligned` lies on a multiple of 64. Not written to. Nothing when the budget is used up.
  std::optional<Bytes> Allocate(size_t size, size_t aligned);

  // The same of which only `claimed` bytes count to begin with. The share may grow for as long as anyone
  // holds the bytes. Nothing when all of them would not be to be had now, or there is no such memory.
  struct Partly {
    Bytes bytes;
    Share* share;
  };
  std::optional<Partly> AllocatePartly(size_t size, size_t aligned, size_t claimed);

  size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const size_t limit_;
  std::atomic<size_t> used_ = 0;
};

}  // namespace weir::http
