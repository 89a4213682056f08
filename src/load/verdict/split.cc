#include "load/verdict/split.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "infer/server_times.h"

namespace weir::load {
namespace {

double Nanoseconds(Duration d) { return static_cast<double>(d.count()); }

// Rises with the value: below 128 every value has its own, above it each power of two has 64.
int64_t BucketOf(Duration response) {
  constexpr int kBits = 7;
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(0, response.count()));
  const int shift = std::max(0, static_cast<int>(std::bit_width(ns)) - kBits);
  return int64_t{shift} * (1 << (kBits - 1)) + static_cast<int64_t>(ns >> shift);
}

}  // namespace

std::string_view ToString(SplitPart part) {
  constexpr std::array<std::string_view, kParts> kNames = {
      "slip",          "client_send",   "wire_and_wait",  "receive",     "queue",
      "compute_input", "compute_infer", "compute_output", "server_rest", "client_receive"};
  return kNames[static_cast<size_t>(part)];
}

Split& Split::Add(const Split& more, double factor) {
  response += factor * more.response;
  for (size_t i = 0; i < parts.size(); ++i) parts[i] += factor * more.parts[i];
  return *this;
}

Split SplitOf(const Sample& sample, const infer::ServerDurations& server) {
  Split split{
      .response = Nanoseconds(sample.response()),
      .parts = {Nanoseconds(sample.slip()), Nanoseconds(sample.send),
                Nanoseconds(sample.first_byte - sample.sent - sample.send - server.whole()),
                Nanoseconds(server.receive), Nanoseconds(server.queue), Nanoseconds(server.compute_input),
                Nanoseconds(server.compute_infer), Nanoseconds(server.compute_output),
                Nanoseconds(server.rest), Nanoseconds(sample.done - sample.first_byte)}};
  const auto part = [&](SplitPart name) { return &split.parts[static_cast<size_t>(name)]; };
  using enum SplitPart;
  infer::CountOverlapOnce(*part(kServerRest), {part(kComputeInput), part(kQueue), part(kComputeInfer),
                                               part(kComputeOutput), part(kReceive)});
  infer::CountOverlapOnce(*part(kWireAndWait), {part(kReceive), part(kClientSend)});
  return split;
}

void SplitSums::Add(const Sample& sample, const infer::ServerDurations& server) {
  Bucket& bucket = buckets_[BucketOf(sample.response())];
  bucket.count += 1;
  bucket.sum.Add(SplitOf(sample, server));
  count_ += 1;
}

void SplitSums::Merge(const SplitSums& more) {
  for (const auto& [number, bucket] : more.buckets_) {
    buckets_[number].count += bucket.count;
    buckets_[number].sum.Add(bucket.sum);
  }
  count_ += more.count_;
}

std::optional<Split> SplitSums::Mean() const { return MeanOfSlowest(count_); }

std::optional<Split> SplitSums::MeanOfSlowest(int64_t requests) const {
  if (requests < 1 || requests > count_) return std::nullopt;
  Split sum;
  int64_t left = requests;
  for (const Bucket& bucket : std::views::reverse(std::views::values(buckets_))) {
    const int64_t taken = std::min(left, bucket.count);
    sum.Add(bucket.sum, static_cast<double>(taken) / static_cast<double>(bucket.count));
    left -= taken;
    if (left == 0) break;
  }
  return Split{}.Add(sum, 1 / static_cast<double>(requests));
}

}  // namespace weir::load
