#include "http/byte_budget.h"

#include <cstdint>
#include <new>

namespace weir::http {
namespace {

constexpr size_t kAlignment = 64;

struct Block {
  ByteBudget::Share share;
  std::unique_ptr<std::byte[]> memory;
};

}  // namespace

std::optional<ByteBudget::Share> ByteBudget::Take(size_t size) {
  if (size > limit_) return std::nullopt;
  const size_t before = used_.fetch_add(size, std::memory_order_relaxed);
  if (before <= limit_ - size) return Share(shared_from_this(), size);
  used_.fetch_sub(size, std::memory_order_relaxed);
  return std::nullopt;
}

bool ByteBudget::Share::Grow(size_t more) {
  std::optional<Share> taken = budget_->Take(more);
  if (!taken) return false;
  size_ += more;
  taken->budget_.reset();
  return true;
}

ByteBudget::Share ByteBudget::Charge(size_t size) {
  used_.fetch_add(size, std::memory_order_relaxed);
  return Share(shared_from_this(), size);
}

std::optional<Bytes> ByteBudget::Allocate(size_t size, size_t aligned) {
  std::optional<Partly> whole = AllocatePartly(size, aligned, size);
  if (!whole) return std::nullopt;
  return std::move(whole->bytes);
}

std::optional<ByteBudget::Partly> ByteBudget::AllocatePartly(size_t size, size_t aligned, size_t claimed) {
  if (size > limit_ || used() > limit_ - size) return std::nullopt;
  std::optional<Share> share = Take(claimed);
  if (!share) return std::nullopt;
  // Aligned by hand: the allocator's own way with alignment is slow where blocks are small.
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[size + kAlignment]);
  if (!memory) return std::nullopt;  // more may be announced than there is
  const size_t lead = -(reinterpret_cast<uintptr_t>(memory.get()) + aligned) % kAlignment;
  std::byte* const data = memory.get() + lead;
  const auto block = std::make_shared<Block>(std::move(*share), std::move(memory));
  return Partly{Bytes::Wrap(block, data, size), &block->share};
}

}  // namespace weir::http
