#include "probe/feed/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "feed/epoch_hash.h"
#include "feed/state.h"
#include "results/verdict.h"

namespace weir::probe {
namespace {

using results::FeedResult;

FeedResult::Host HostOf(const HostFeed& part, int64_t rank) {
  FeedResult::Host made{.name = EscapeBytes(part.host.name),
                        .rank = rank,
                        .clock_offset_us = {},
                        .clock_error_us = {},
                        .lost = part.host.lost,
                        .verdict = std::string(ToString(results::Standing::kInvalid)),
                        .samples_per_s = {},
                        .cpu_us_per_sample = {},
                        .stages_ms = {},
                        .resources = {}};
  if (part.host.clock) {
    made.clock_offset_us = Microseconds(part.host.clock->offset);
    made.clock_error_us = Microseconds(part.host.clock->error);
  }
  if (!part.result) return made;
  const FeedResult& r = *part.result;
  made.verdict = r.verdict;
  made.samples = r.samples;
  made.wall_s = r.wall_s;
  made.samples_per_s = r.samples_per_s;
  made.cpu_us_per_sample = r.cpu_us_per_sample;
  made.first_batch_ms = r.first_batch_ms;
  made.meet_ms = r.meet_ms.value_or(0);
  made.bytes_read = r.bytes_read;
  made.stages_ms = r.stages_ms;
  made.resources = r.resources;
  return made;
}

Result<std::vector<std::string>> SumHashes(const std::vector<HostFeed>& parts) {
  std::vector<feed::EpochHash> sums;
  for (const HostFeed& part : parts) {
    if (!part.result || part.result->epoch_hashes.empty()) return std::vector<std::string>{};
    sums.resize(std::max(sums.size(), part.result->epoch_hashes.size()));
    for (size_t i = 0; i < part.result->epoch_hashes.size(); ++i)
      sums[i] += TRY(feed::EpochHash::FromDigest(part.result->epoch_hashes[i]));
  }
  std::vector<std::string> hashes;
  for (const feed::EpochHash& sum : sums) hashes.push_back(sum.Digest());
  return hashes;
}

void AddStages(const FeedResult::Stages& more, FeedResult::Stages& sum) {
  sum.read += more.read;
  sum.decode += more.decode;
  sum.augment += more.augment;
  sum.wait += more.wait;
  sum.idle += more.idle;
}

void AddVerdict(const std::string& name, const FeedResult& more, results::Standing& worst, FeedResult& sum) {
  worst = std::max(worst, results::ReadStanding(more.verdict).value_or(results::Standing::kInvalid));
  for (const FeedResult::Reason& reason : more.reasons)
    sum.reasons.push_back({reason.reason, fmt::format("{}: {}", name, reason.evidence)});
}

// The host that waited least for the others holds them back.
void FindBottleneck(const std::vector<HostFeed>& parts, FeedResult& sum) {
  const HostFeed* slowest = nullptr;
  for (const HostFeed& part : parts) {
    if (!part.result) continue;
    if (slowest == nullptr || part.result->meet_ms.value_or(0) < slowest->result->meet_ms.value_or(0))
      slowest = &part;
  }
  sum.bottleneck = slowest->result->bottleneck;
  if (sum.bottleneck && parts.size() > 1)
    sum.bottleneck->text = fmt::format("{}, which the others wait for: {}", EscapeBytes(slowest->host.name),
                                       sum.bottleneck->text);
}

// Adds the figures of one host. `busy_s`: of its emulated trainer.
void AddPart(const FeedResult& more, double& cpu_us, double& busy_s, FeedResult& sum) {
  sum.samples += more.samples;
  sum.batches += more.batches;
  sum.wall_s = std::max(sum.wall_s, more.wall_s);
  sum.first_batch_ms = std::max(sum.first_batch_ms, more.first_batch_ms);
  sum.bytes_read += more.bytes_read;
  AddStages(more.stages_ms, sum.stages_ms);
  sum.meet_ms = sum.meet_ms.value_or(0) + more.meet_ms.value_or(0);
  cpu_us += more.cpu_us_per_sample.value_or(0) * static_cast<double>(more.samples);
  if (more.trainer) busy_s += more.trainer->utilisation_percent / 100 * more.wall_s;
  for (const auto& [reason, count] : more.rejected) sum.rejected[reason] += count;
  sum.rejected_examples.insert(sum.rejected_examples.end(), more.rejected_examples.begin(),
                               more.rejected_examples.end());
  sum.interrupted |= more.interrupted;
}

// Keeps the earliest place: after a stop the ranks may stand a step apart, and no sample may be left out.
Status TakeState(const Json& more, FeedResult& sum) {
  const auto place = [](const Json& state) -> Result<std::pair<int64_t, int64_t>> {
    const feed::FeedState read = TRY(feed::ParseState(DumpJson(state)));
    return std::pair(read.epoch, read.position);
  };
  if (TRY(place(more)) < TRY(place(sum.state))) sum.state = more;
  return {};
}

Status CheckSameSet(const HostFeed& one, const HostFeed& other) {
  if (one.result->hash == other.result->hash) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("the hosts read different sets: {} has {} ({} samples), {} has {} ({} samples)",
                          EscapeBytes(one.host.name), one.result->hash, one.result->images,
                          EscapeBytes(other.host.name), other.result->hash, other.result->images));
}

}  // namespace

Result<FeedResult> MergeFeeds(const std::vector<HostFeed>& parts) {
  const auto first =
      std::ranges::find_if(parts, [](const HostFeed& part) { return part.result.has_value(); });
  std::string lost;
  for (const HostFeed& part : parts) {
    if (part.host.lost)
      lost += fmt::format("{}{}: {}", lost.empty() ? "" : "; ", EscapeBytes(part.host.name), *part.host.lost);
  }
  if (first == parts.end()) return Fail(ErrorCode::kIo, "no host has a result; lost: " + lost);
  FeedResult sum = *first->result;
  sum.rank = 0;
  sum.world = std::ssize(parts);
  sum.samples = sum.batches = sum.bytes_read = 0;
  sum.wall_s = sum.first_batch_ms = 0;
  sum.stages_ms = {};
  sum.meet_ms.reset();
  sum.reasons.clear();
  sum.rejected.clear();
  sum.rejected_examples.clear();
  sum.resources = {};
  double cpu_us = 0, busy_s = 0, wall_s = 0;
  auto worst = results::Standing::kValid;
  for (const HostFeed& part : parts) {
    sum.hosts.push_back(HostOf(part, std::ssize(sum.hosts)));
    if (!part.result) continue;
    TRY_STATUS(CheckSameSet(*first, part));
    TRY_STATUS(TakeState(part.result->state, sum));
    AddPart(*part.result, cpu_us, busy_s, sum);
    AddVerdict(sum.hosts.back().name, *part.result, worst, sum);
    wall_s += part.result->wall_s;
  }
  sum.samples_per_s.reset();
  sum.cpu_us_per_sample.reset();
  if (sum.samples > 0 && sum.wall_s > 0) {
    sum.samples_per_s = static_cast<double>(sum.samples) / sum.wall_s;
    sum.cpu_us_per_sample = cpu_us / static_cast<double>(sum.samples);
  }
  if (sum.trainer && wall_s > 0) sum.trainer->utilisation_percent = 100 * busy_s / wall_s;
  FindBottleneck(parts, sum);
  sum.epoch_hashes = TRY(SumHashes(parts));
  if (!lost.empty()) {
    worst = results::Standing::kInvalid;
    sum.reasons.push_back({std::string(ToString(results::Reason::kHostLost)), lost});
  }
  sum.verdict = ToString(worst);
  return sum;
}

}  // namespace weir::probe
