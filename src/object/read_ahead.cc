#include "object/read_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::object {
namespace {

// A reader that asks at most so many behind or ahead of the others still goes in order.
constexpr int64_t kDisorder = 64;

bool IsSmall(const ReadAhead::Item& item) { return item.size && *item.size <= kPartBytes; }

}  // namespace

ReadAhead::ReadAhead(std::shared_ptr<ObjectSource> source, std::vector<Item> items, Options options)
    : source_(std::move(source)), items_(std::move(items)), options_(options) {}

ReadAhead::ReadAhead(std::shared_ptr<ObjectSource> source, std::vector<Item> items)
    : ReadAhead(std::move(source), std::move(items), Options()) {}

ReadAhead::~ReadAhead() = default;

void ReadAhead::StartAhead(int64_t index) {
  std::vector<int64_t> begun;
  {
    Shared& shared = *shared_;
    MutexLock lock(shared.mutex);
    const bool in_order =
        index <= shared.frontier + kDisorder && index + options_.ahead + kDisorder >= shared.frontier;
    int64_t end = std::min(index + 1 + (in_order ? options_.ahead : 0), std::ssize(items_));
    int64_t next = in_order ? std::max(index, shared.frontier) : index;
    // Objects that nobody asked for in order are given up, so that they do not fill the memory.
    for (auto slot = shared.slots.begin(); slot != shared.slots.end();) {
      const int64_t at = slot->first;
      const bool given_up = at < index - options_.ahead - kDisorder || (!in_order && at != index);
      if (given_up) shared.slot_bytes -= *items_[static_cast<size_t>(at)].size;
      slot = given_up ? shared.slots.erase(slot) : std::next(slot);
    }
    for (; next < end; ++next) {
      const Item& item = items_[static_cast<size_t>(next)];
      if (!IsSmall(item) || shared.slots.contains(next)) continue;
      if (next != index && shared.slot_bytes + *item.size > options_.ahead_bytes) break;
      shared.slot_bytes += *item.size;
      shared.slots.emplace(next, std::nullopt);
      begun.push_back(next);
    }
    shared.frontier = std::max(in_order ? shared.frontier : 0, next);
  }
  for (const int64_t each : begun) {
    const Item& item = items_[static_cast<size_t>(each)];
    source_->Start({.key = item.key,
                    .etag = item.etag,
                    .size = item.size,
                    .max_bytes = static_cast<uint64_t>(*item.size) + 1},
                   [shared = shared_, each](Result<Response> result) {
                     MutexLock lock(shared->mutex);
                     const auto slot = shared->slots.find(each);
                     if (slot != shared->slots.end()) slot->second = std::move(result);
                     shared->changed.NotifyAll();
                   });
  }
}

Result<Bytes> ReadAhead::Load(int64_t index, uint64_t max_bytes) {
  const Item& item = items_[static_cast<size_t>(index)];
  const WholeRead whole{.key = item.key, .etag = item.etag, .size = item.size, .max_bytes = max_bytes};
  if (!IsSmall(item) || static_cast<uint64_t>(*item.size) > max_bytes) return ReadWhole(*source_, whole);
  StartAhead(index);
  {
    MutexLock lock(shared_->mutex);
    auto slot = shared_->slots.find(index);
    while (slot != shared_->slots.end() && !slot->second) {
      shared_->changed.Wait(shared_->mutex);
      slot = shared_->slots.find(index);
    }
    if (slot != shared_->slots.end()) {
      Result<Response> result = *std::move(slot->second);
      shared_->slots.erase(slot);
      shared_->slot_bytes -= *item.size;
      if (!result) return std::unexpected(result.error());
      return std::move(result->body);
    }
  }
  // Taken by another reader, or given up: read again.
  return ReadWhole(*source_, whole);
}

}  // namespace weir::object
