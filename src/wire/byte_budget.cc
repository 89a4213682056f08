#include "wire/byte_budget.h"

#include <cstdint>

namespace weir::wire {
namespace {

constexpr size_t kAlignment = 64;

struct Release {
  ByteBudget::Share share;
  void operator()(std::byte* memory) const { delete[] memory; }
};

}  // namespace

std::optional<ByteBudget::Share> ByteBudget::Take(size_t size) {
  if (size > limit_) return std::nullopt;
  const size_t before = used_.fetch_add(size, std::memory_order_relaxed);
  if (before <= limit_ - size) return Share(shared_from_this(), size);
  used_.fetch_sub(size, std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<Bytes> ByteBudget::Allocate(size_t size, size_t aligned) {
  std::optional<Share> share = Take(size);
  if (!share) return std::nullopt;
  if (size == 0) return Bytes();
  // Aligned by hand: the allocator's own way with alignment is slow where blocks are small.
  auto* memory = new std::byte[size + kAlignment];
  std::shared_ptr<const void> owner(memory, Release{std::move(*share)});
  const size_t lead = -(reinterpret_cast<uintptr_t>(memory) + aligned) % kAlignment;
  return Bytes::Wrap(std::move(owner), memory + lead, size);
}

}  // namespace weir::wire
