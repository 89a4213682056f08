#include "probe/storage_tally.h"

#include <algorithm>
#include <utility>

namespace weir::probe {
namespace {

constexpr size_t kErrorsKept = 10;

}  // namespace

void Stalls::Add(const Stalls& other) {
  queue += other.queue;
  open += other.open;
  read += other.read;
  close += other.close;
  decode += other.decode;
  augment += other.augment;
  hosts += other.hosts;
}

void StallTimes::Add(const Stalls& stalls) {
  queue.Add(stalls.queue.count());
  open.Add(stalls.open.count());
  read.Add(stalls.read.count());
  close.Add(stalls.close.count());
  decode.Add(stalls.decode.count());
  augment.Add(stalls.augment.count());
  hosts.Add(stalls.hosts.count());
}

void StallTimes::Merge(const StallTimes& other) {
  queue.Merge(other.queue);
  open.Merge(other.open);
  read.Merge(other.read);
  close.Merge(other.close);
  decode.Merge(other.decode);
  augment.Merge(other.augment);
  hosts.Merge(other.hosts);
}

void ReadTally::Add(const ReadMoments& moments) {
  if (moments.own_file) {
    open_ns.Add((moments.opened - moments.begin).count());
    close_ns.Add((moments.closed - moments.closing).count());
  }
  read_ns.Add((moments.read - moments.began).count());
  bytes += moments.bytes;
  if (moments.decode > Duration{}) {
    decode_ns.Add(moments.decode.count());
    augment_ns.Add(moments.augment.count());
  }
  if (!moments.asked_cache) return;
  if (moments.cached_bytes) {
    cached_bytes += std::min(*moments.cached_bytes, moments.bytes);
    asked_bytes += moments.bytes;
  } else {
    ++unknown_cache;
  }
}

void ReadTally::AddError(std::string message) {
  ++errors;
  if (first_errors.size() < kErrorsKept) first_errors.push_back(std::move(message));
}

void ReadTally::Merge(const ReadTally& other) {
  open_ns.Merge(other.open_ns);
  read_ns.Merge(other.read_ns);
  close_ns.Merge(other.close_ns);
  decode_ns.Merge(other.decode_ns);
  augment_ns.Merge(other.augment_ns);
  bytes += other.bytes;
  cached_bytes += other.cached_bytes;
  asked_bytes += other.asked_bytes;
  unknown_cache += other.unknown_cache;
  errors += other.errors;
  for (const std::string& error : other.first_errors)
    if (first_errors.size() < kErrorsKept) first_errors.push_back(error);
  hung.insert(hung.end(), other.hung.begin(), other.hung.end());
}

std::optional<double> ReadTally::CachedShare() const {
  if (asked_bytes == 0) return std::nullopt;
  return static_cast<double>(cached_bytes) / static_cast<double>(asked_bytes);
}

}  // namespace weir::probe
