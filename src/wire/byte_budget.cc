#include "wire/byte_budget.h"

#include <new>

namespace weir::wire {
namespace {

constexpr size_t kAlignment = 64;

struct Release {
  ByteBudget::Share share;
  void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kAlignment}); }
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
  const size_t lead = (kAlignment - aligned % kAlignment) % kAlignment;
  std::optional<Share> share = Take(size);
  if (!share) return std::nullopt;
  if (size == 0) return Bytes();
  auto* memory = static_cast<std::byte*>(::operator new(lead + size, std::align_val_t{kAlignment}));
  std::shared_ptr<const void> owner(memory, Release{std::move(*share)});
  return Bytes::Wrap(std::move(owner), memory + lead, size);
}

}  // namespace weir::wire
