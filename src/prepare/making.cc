#include "prepare/making.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "dataset/set_text.h"
#include "prepare/copies.h"
#include "prepare/part.h"

namespace weir::prepare {
namespace {

// One input that is in the sets, as it was when it was read.
void AddTo(dataset::StreamHash& hash, const Feed& feed, int64_t index, std::string_view state) {
  const std::string text = fmt::format("{}{}\n", feed.describe ? feed.describe(index) : "", state);
  hash.Add(std::as_bytes(std::span(text)));
}

// The same as it is now.
void AddTo(dataset::StreamHash& hash, const Feed& feed, int64_t index) {
  AddTo(hash, feed, index, feed.state ? feed.state(index) : "");
}

dataset::SetFacts FactsToMake(const Feed& feed, const std::string& inputs_hash, const Options& options,
                              const std::optional<dataset::Geometry>& geometry) {
  Json made_with = OptionsJson(options);
  made_with.update(feed.arguments.ToJson());
  dataset::SetFacts facts;
  facts.format = options.format;
  facts.geometry = geometry;
  facts.label_rule = feed.label_rule;
  facts.classes = feed.classes;
  if (geometry) {
    facts.size = geometry->OutputSize();
    facts.channels = geometry->channel_count();
  }
  facts.options = DumpJson(made_with);
  facts.inputs = feed.count;
  facts.inputs_hash = inputs_hash;
  facts.part = options.part;
  return facts;
}

// The sets of one geometry.
void AddSets(const dataset::SetFacts& facts, const std::string& folder, const Options& options, Job& job) {
  if (options.split.empty()) job.sets.push_back({folder, facts});
  for (const SplitShare& share : options.split) {
    job.sets.push_back({fmt::format("{}/{}", folder, share.name), facts});
    job.sets.back().facts.split = share.name;
  }
}

}  // namespace

Job MakeJob(const Feed& feed, const Options& options) {
  Job job;
  job.folder = options.folder;
  if (options.part) job.folder += "/" + PartFolder(*options.part);
  const std::string inputs_hash = HashOfInputs(feed);
  if (options.variations.empty()) {
    AddSets(FactsToMake(feed, inputs_hash, options, options.geometry), job.folder, options, job);
  }
  for (const Variation& variation : options.variations) {
    AddSets(FactsToMake(feed, inputs_hash, options, variation.geometry),
            fmt::format("{}/{}", job.folder, variation.name), options, job);
  }
  if (!options.split.empty()) {
    job.plan = PlanSplit(feed, options.split, options.split_seed);
    job.shares = options.split.size();
  }
  const Range range =
      options.part ? RangeOf(*options.part, feed.count) : Range{.first = 0, .end = feed.count};
  job.first = range.first;
  job.end = range.end;
  job.head["weir_prepare"] = 1;
  for (size_t i = 0; i < job.sets.size(); i += job.shares) {
    const Json head = dataset::MakingOf(job.sets[i].facts);
    if (i == 0) job.head.update(head);
    if (options.variations.empty()) continue;
    job.head["variation " + options.variations[i / job.shares].name] = head["geometry"];
  }
  return job;
}

Result<std::optional<std::vector<dataset::SetFacts>>> FindFinished(const Job& job) {
  std::vector<dataset::SetFacts> found;
  const bool unfinished = Checkpoints::IsThere(job.folder);
  for (const SetToMake& set : job.sets) {
    if (unfinished || !dataset::PreparedSet::IsSet(set.folder)) return std::nullopt;
    dataset::SetFacts facts = TRY(dataset::ReadSetFacts(set.folder));
    std::string difference = Difference(dataset::MakingOf(facts), dataset::MakingOf(set.facts));
    if (difference.empty() && facts.inputs_hash != set.facts.inputs_hash) {
      difference = fmt::format("inputs: {} then, {} now, or others, or with other labels", facts.inputs,
                               set.facts.inputs);
    }
    const bool unlabelled = set.facts.label_rule == dataset::LabelRule::kNone;
    if (difference.empty() && facts.label_rule != set.facts.label_rule && !unlabelled)
      difference = "the rule that numbers classes, which was another one in an older program";
    if (!difference.empty()) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: a finished set is there that was made with other arguments ({}); remove it, "
                      "or choose another folder",
                      set.folder, difference));
    }
    found.push_back(std::move(facts));
  }
  return found;
}

Result<std::unique_ptr<Making>> Making::Open(const Job& job, const Feed& feed, const Options& options,
                                             const Clock& clock,
                                             const std::function<void(const Progress&)>& progress) {
  std::unique_ptr<Making> making(new Making(job, feed, options, clock, progress));
  TRY_STATUS(making->Begin());
  return making;
}

Status Making::Begin() {
  const bool was_begun = Checkpoints::IsThere(job_.folder);
  if (!was_begun) TRY_STATUS(dataset::SetWriter::CheckIsFree(job_.folder));
  TRY_STATUS(MakeFolders(job_.folder));
  auto [checkpoints, found] = TRY(Checkpoints::Open(job_.folder, job_.head));
  // Another process may have made the whole set since the folder was found free.
  const auto is_finished = [](const SetToMake& set) { return dataset::PreparedSet::IsSet(set.folder); };
  if (!was_begun && std::ranges::any_of(job_.sets, is_finished)) {
    TRY_STATUS(checkpoints->Remove());
    return Fail(ErrorCode::kIo, fmt::format("{}: another run has just finished a set there", job_.folder));
  }
  const Checkpoint from = LastGood(found);
  for (size_t i = 0; i < job_.sets.size(); ++i) {
    const SetToMake& set = job_.sets[i];
    writers_.push_back(
        TRY(dataset::SetWriter::Resume(set.folder, set.facts, options_.shard_bytes, from.sets[i])));
    if (options_.reject_duplicates || job_.shares > 1) {
      TRY_STATUS(known_.AddManifest(set.folder + "/manifest.jsonl", from.sets[i].manifest_bytes,
                                    static_cast<uint32_t>(i)));
    }
  }
  checkpoints_ = std::move(checkpoints);
  next_ = from.next;
  originals_ = from.originals;
  for (int64_t i = job_.first; i < next_; ++i) AddTo(inputs_, feed_, i);
  state_.begun_at = state_.done = next_ - job_.first;
  for (size_t i = 0; i < originals_.size(); ++i) state_.done += from.sets[i].images - originals_[i];
  for (size_t i = 0; i < job_.shares; ++i) {
    for (const auto& [reason, count] : from.sets[i].rejected) state_.rejected += count;
  }
  if (!found.empty()) made_again_ = std::max<int64_t>(0, found.back().next - from.next);
  state_.total = std::max(job_.end - job_.first, options_.part ? 0 : options_.replicate);
  kept_ = clock_.Now();
  return {};
}

// By checkpoint: the hash that its inputs have now; empty where there are not as many.
std::vector<std::string> Making::HashesUpTo(const std::vector<Checkpoint>& checkpoints) const {
  std::vector<std::string> hashes(checkpoints.size());
  dataset::StreamHash hash;
  int64_t at = job_.first;
  for (size_t i = 0; i < checkpoints.size(); ++i) {  // `next` only grows, but after a step back
    if (checkpoints[i].next < at) {
      hash = dataset::StreamHash();
      at = job_.first;
    }
    if (checkpoints[i].next > job_.end) continue;
    for (; at < checkpoints[i].next; ++at) AddTo(hash, feed_, at);
    if (at == checkpoints[i].next) hashes[i] = hash.Digest();
  }
  return hashes;
}

Checkpoint Making::LastGood(const std::vector<Checkpoint>& found) const {
  const std::vector<std::string> hashes = HashesUpTo(found);
  for (size_t i = found.size(); i-- > 0;) {
    const Checkpoint& checkpoint = found[i];
    if (checkpoint.inputs != hashes[i] || checkpoint.sets.size() != job_.sets.size()) continue;
    if (!checkpoint.originals.empty() && checkpoint.next != job_.end) continue;
    bool all = true;
    for (size_t k = 0; k < job_.sets.size(); ++k) {
      all = all && dataset::SetWriter::CanResume(job_.sets[k].folder, job_.sets[k].facts, checkpoint.sets[k]);
    }
    if (all) return checkpoint;
  }
  return {.next = job_.first,
          .inputs = "",
          .sets = std::vector<dataset::SetPoint>(job_.sets.size()),
          .originals = {}};
}

void Making::Tell() {
  state_.done += 1;
  state_.total = std::max(state_.total, state_.done);
  if (progress_) progress_(state_);
}

Status Making::WriteTo(dataset::SetWriter& writer, const Outcome& outcome,
                       const image::Accepted<Made>& made) {
  if (!made) {
    return writer.AddReject(outcome.source, next_, ToString(made.error().reason), made.error().detail);
  }
  TRY_STATUS(writer.Add({.source = outcome.source,
                         .input = next_,
                         .label = outcome.label,
                         .bytes = made->bytes.span(),
                         .extension = made->extension,
                         .hash = made->hash,
                         .width = made->width,
                         .height = made->height,
                         .sha256 = made->sha256,
                         .source_hash = outcome.source_hash,
                         .source_sha256 = outcome.source_sha256,
                         .source_bytes = outcome.bytes_in}));
  return {};
}

// Pictures of the same bytes go where the first of them went.
size_t Making::ShareOf(const Outcome& outcome) const {
  if (job_.shares == 1) return 0;
  const auto accepted = [](const image::Accepted<Made>& made) { return made.has_value(); };
  if (std::ranges::any_of(outcome.made, accepted)) {
    if (const auto twin = known_.Find(outcome.source_hash)) return twin->set % job_.shares;
  }
  return job_.plan[static_cast<size_t>(next_)];
}

Status Making::AddToShare(const Outcome& outcome, size_t share) {
  const bool keep_known = options_.reject_duplicates || job_.shares > 1;
  for (size_t i = 0; i < outcome.made.size(); ++i) {
    const size_t set = i * job_.shares + share;
    const int64_t at = writers_[set].manifest_bytes();
    TRY_STATUS(WriteTo(writers_[set], outcome, outcome.made[i]));
    if (keep_known && outcome.made[i]) known_.Add(outcome.source_hash, {static_cast<uint32_t>(set), at});
  }
  return {};
}

// In each variation: the reject of its own, or else that of a duplicate.
Status Making::AddDuplicate(const Outcome& outcome, const KnownContents::Place& twin) {
  const dataset::SetEntry first = TRY(writers_[twin.set].EntryAt(twin.manifest_byte));
  const dataset::RejectEntry reject =
      DuplicateOf(first, EscapeBytes(outcome.source), next_, outcome.source_hash);
  const size_t share = job_.shares == 1 ? 0 : job_.plan[static_cast<size_t>(next_)];
  for (size_t i = 0; i < outcome.made.size(); ++i) {
    dataset::SetWriter& writer = writers_[i * job_.shares + share];
    TRY_STATUS(outcome.made[i] ? writer.AddReject(reject) : WriteTo(writer, outcome, outcome.made[i]));
  }
  return {};
}

Status Making::Write(const Outcome& outcome) {
  CHECK(outcome.made.size() * job_.shares == writers_.size());
  const Instant begin = clock_.Now();
  times_ += outcome.times;
  state_.bytes_in += outcome.bytes_in;
  const bool good =
      std::ranges::any_of(outcome.made, [](const image::Accepted<Made>& made) { return made.has_value(); });
  std::optional<KnownContents::Place> twin;
  if (good && options_.reject_duplicates) twin = known_.Find(outcome.source_hash);
  TRY_STATUS(twin ? AddDuplicate(outcome, *twin) : AddToShare(outcome, ShareOf(outcome)));
  if (twin || !outcome.made.front()) state_.rejected += 1;
  if (good && !twin) accepted_ += 1;
  AddTo(inputs_, feed_, next_, outcome.state);
  next_ += 1;
  const Status kept = KeepWhenDue();
  times_.write += clock_.Now() - begin;
  TRY_STATUS(kept);
  Tell();
  return {};
}

Status Making::KeepWhenDue() {
  const Instant now = clock_.Now();
  if (now - kept_ < options_.checkpoint_every || !checkpoints_->Idle()) return {};
  kept_ = now;
  return Post();
}

Status Making::Post() {
  Checkpoint checkpoint{.next = next_, .inputs = inputs_.Digest(), .sets = {}, .originals = originals_};
  std::vector<dataset::Unsettled> unsettled;
  for (dataset::SetWriter& writer : writers_) {
    checkpoint.sets.push_back(TRY(writer.Flush()));
    unsettled.push_back(TRY(writer.TakeUnsettled()));
  }
  return checkpoints_->Post(std::move(checkpoint), std::move(unsettled));
}

Status Making::Keep() {
  TRY_STATUS(Post());
  return checkpoints_->Wait();
}

Status Making::Replicate(const std::stop_token& stop) {
  if (options_.part || options_.replicate == 0) return {};
  if (originals_.empty()) {
    for (const dataset::SetWriter& writer : writers_) originals_.push_back(writer.images());
  }
  for (size_t i = 0; i < writers_.size(); ++i) TRY_STATUS(ReplicateIn(i, stop));
  return {};
}

Status Making::ReplicateIn(size_t set, const std::stop_token& stop) {
  const std::vector<int64_t> wanted =
      job_.shares == 1 ? std::vector{options_.replicate} : DivideByShares(options_.replicate, options_.split);
  const Copies copies{.folder = job_.sets[set].folder,
                      .originals = originals_[set],
                      .wanted = wanted[set % job_.shares],
                      .stop = stop};
  Instant begin = clock_.Now();
  return AddCopies(writers_[set], copies, [&] {
    const Status kept = KeepWhenDue();
    const Instant now = clock_.Now();
    times_.write += now - begin;
    begin = now;
    Tell();
    return kept;
  });
}

Result<std::vector<dataset::SetFacts>> Making::Finish() {
  TRY_STATUS(checkpoints_->Wait());
  std::vector<dataset::SetFacts> facts;
  for (dataset::SetWriter& writer : writers_) facts.push_back(TRY(writer.Finish()));
  TRY_STATUS(checkpoints_->Remove());
  return facts;
}

}  // namespace weir::prepare
