#include "prepare/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/file.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"
#include "dataset/set_text.h"
#include "prepare/checkpoint.h"
#include "prepare/copies.h"
#include "prepare/known_contents.h"

namespace weir::prepare {
namespace {

struct PartSet {
  std::string folder;
  dataset::SetFacts facts;
};
// By the name of the variation; "" where there are none. The sets of a part's shares follow one another.
using Works = std::map<std::string, std::vector<PartSet>>;

Result<PartSet> ReadPart(const std::string& folder) {
  PartSet part{folder, TRY(dataset::ReadSetFacts(folder))};
  if (part.facts.part) return part;
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: is a whole set, not a part of one", folder));
}

// The sub-folders, in byte order.
Result<std::vector<std::string>> SubFolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename());
  }
  if (error) return FailErrno(folder, error.value());
  std::ranges::sort(names);
  return names;
}

// Adds the set in `folder`, or the shares' sets below it, to variation `name`.
Status AddVariation(const std::string& folder, const std::string& name, Works& works) {
  if (dataset::PreparedSet::IsSet(folder)) {
    works[name].push_back(TRY(ReadPart(folder)));
    return {};
  }
  for (const std::string& share : TRY(SubFolders(folder))) {
    const std::string inside = folder + "/" + share;
    if (!dataset::PreparedSet::IsSet(inside)) continue;
    PartSet part = TRY(ReadPart(inside));
    if (!part.facts.split.empty()) works[name].push_back(std::move(part));
  }
  return {};
}

// The parts at `folder`: it is one, or holds one of each variation (`depth` 1), or holds such folders.
Status FindParts(const std::string& folder, int depth, Works& works) {
  if (dataset::PreparedSet::IsSet(folder)) return AddVariation(folder, "", works);
  if (Checkpoints::IsThere(folder) || dataset::PreparedSet::IsUnfinished(folder)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: this part is not finished: run its command again", folder));
  }
  for (const std::string& name : TRY(SubFolders(folder))) {
    const std::string inside = folder + "/" + name;
    if (name.starts_with("part-")) {
      if (depth > 0) TRY_STATUS(FindParts(inside, depth - 1, works));
      continue;
    }
    const bool is_share =
        dataset::PreparedSet::IsSet(inside) && !TRY(dataset::ReadSetFacts(inside)).split.empty();
    TRY_STATUS(AddVariation(inside, is_share ? "" : name, works));
  }
  return {};
}

// The options of the parts that apply to the whole set.
struct WholeOptions {
  int64_t replicate = 0;
  bool reject_duplicates = false;
  std::vector<SplitShare> split;
};
Result<WholeOptions> ReadOptions(const dataset::SetFacts& facts) {
  const Json json = TRY_CONTEXT(ParseJson(facts.options), "set.json: options");
  WholeOptions options;
  if (json.contains("replicate")) options.replicate = TRY(GetInteger(json, "replicate"));
  options.reject_duplicates = json.contains("reject_duplicates");
  if (json.contains("split")) options.split = TRY(ParseSplit(TRY(GetString(json, "split"))));
  return options;
}

// The number of a set among its part's shares.
Result<size_t> ShareOf(const dataset::SetFacts& facts, const WholeOptions& whole, const std::string& folder) {
  if (whole.split.empty() && facts.split.empty()) return 0;
  const auto found = std::ranges::find(whole.split, facts.split, &SplitShare::name);
  if (found != whole.split.end()) return static_cast<size_t>(found - whole.split.begin());
  return Fail(ErrorCode::kCorrupt,
              fmt::format("{}/set.json: \"{}\" is no share of its split", folder, facts.split));
}

// That the parts are those of one work, and all of them; puts them in order.
Status CheckParts(std::vector<PartSet>& parts) {
  const dataset::SetFacts first = parts.front().facts;
  const WholeOptions whole = TRY(ReadOptions(first));
  const auto shares = std::max<int64_t>(1, std::ssize(whole.split));
  std::vector<std::pair<int64_t, size_t>> order;  // place among all sets, number in `parts`
  for (size_t i = 0; i < parts.size(); ++i) {
    const dataset::SetFacts& facts = parts[i].facts;
    if (facts.part->count != first.part->count || facts.options != first.options ||
        facts.inputs_hash != first.inputs_hash || facts.format != first.format ||
        facts.geometry != first.geometry || facts.label_rule != first.label_rule ||
        facts.classes != first.classes) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{} and {} are parts of different works",
                                                           parts.front().folder, parts[i].folder));
    }
    const size_t share = TRY(ShareOf(facts, whole, parts[i].folder));
    order.emplace_back((facts.part->index - 1) * shares + static_cast<int64_t>(share), i);
  }
  std::ranges::sort(order);
  std::vector<PartSet> sorted;
  const auto missing = [&](int64_t place) -> Status {
    const std::string share =
        whole.split.empty() ? ""
                            : fmt::format("{} of ", whole.split[static_cast<size_t>(place % shares)].name);
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}part {} of {} is missing", share, place / shares + 1, first.part->count));
  };
  for (const auto& [place, number] : order) {
    const int64_t next = std::ssize(sorted);
    if (place > next) return missing(next);
    PartSet& part = parts[number];
    if (place < next) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: part {} is there twice", part.folder, part.facts.part->index));
    }
    sorted.push_back(std::move(part));
  }
  if (std::ssize(sorted) != first.part->count * shares) return missing(std::ssize(sorted));
  parts = std::move(sorted);
  return {};
}

// The lines of both lists of one part, in the order of their inputs.
class PartReader {
 public:
  static Result<PartReader> Open(const std::string& folder) {
    PartReader reader(TRY(dataset::LineReader::Open(folder + "/manifest.jsonl")),
                      TRY(dataset::LineReader::Open(folder + "/rejects.jsonl")), folder);
    TRY_STATUS(reader.NextEntry());
    TRY_STATUS(reader.NextReject());
    return reader;
  }

  bool done() const { return !entry_ && !reject_; }
  bool entry_is_next() const { return entry_ && (!reject_ || entry_->input < reject_->input); }
  // Returns the input of the line that comes next. REQUIRES: not done.
  int64_t input() const { return entry_is_next() ? entry_->input : reject_->input; }
  // REQUIRES: that one is next.
  Result<dataset::SetEntry> TakeEntry() {
    dataset::SetEntry entry = *std::move(entry_);
    TRY_STATUS(NextEntry());
    return entry;
  }
  Result<dataset::RejectEntry> TakeReject() {
    dataset::RejectEntry entry = *std::move(reject_);
    TRY_STATUS(NextReject());
    return entry;
  }

 private:
  PartReader(dataset::LineReader manifest, dataset::LineReader rejects, std::string folder)
      : manifest_(std::move(manifest)), rejects_(std::move(rejects)), folder_(std::move(folder)) {}

  Status NextEntry() {
    const auto line = TRY(manifest_.Next());
    entry_.reset();
    if (line) entry_ = TRY_CONTEXT(dataset::ParseSetEntry(*line), folder_ + "/manifest.jsonl");
    return {};
  }
  Status NextReject() {
    const auto line = TRY(rejects_.Next());
    reject_.reset();
    if (line) reject_ = TRY_CONTEXT(dataset::ParseRejectEntry(*line), folder_ + "/rejects.jsonl");
    return {};
  }

  dataset::LineReader manifest_, rejects_;
  std::string folder_;
  std::optional<dataset::SetEntry> entry_;
  std::optional<dataset::RejectEntry> reject_;
};

// The lines of a part's shares, together in the order of their inputs.
class PartLines {
 public:
  static Result<PartLines> Open(std::span<const PartSet> shares) {
    PartLines lines;
    for (const PartSet& share : shares) lines.readers_.push_back(TRY(PartReader::Open(share.folder)));
    return lines;
  }

  // Returns the share whose line comes next; nullopt at the end.
  std::optional<size_t> Next() const {
    std::optional<size_t> next;
    for (size_t i = 0; i < readers_.size(); ++i) {
      if (readers_[i].done()) continue;
      if (!next || readers_[i].input() < readers_[*next].input()) next = i;
    }
    return next;
  }
  PartReader& reader(size_t share) { return readers_[share]; }

 private:
  std::vector<PartReader> readers_;
};

// Writes the sets of one variation: one, or one for each share.
class Joining {
 public:
  Joining(std::vector<dataset::SetWriter> writers, const WholeOptions& whole, const JoinOptions& options,
          Progress& state)
      : writers_(std::move(writers)), whole_(whole), options_(options), state_(state) {}

  // `shares`: the sets of one part.
  Status Add(std::span<const PartSet> shares) {
    PartLines lines = TRY(PartLines::Open(shares));
    while (const std::optional<size_t> share = lines.Next()) {
      if (options_.stop.stop_requested())
        return Fail(ErrorCode::kCancelled, "stopped while joining: the same command begins it anew");
      PartReader& reader = lines.reader(*share);
      TRY_STATUS(reader.entry_is_next() ? AddEntry(shares[*share], *share, TRY(reader.TakeEntry()))
                                        : AddReject(*share, TRY(reader.TakeReject())));
      Tell();
    }
    return {};
  }

  // `folders`: of the sets.
  Result<std::vector<dataset::SetFacts>> Finish(const std::vector<std::string>& folders) {
    const std::vector<int64_t> wanted =
        whole_.split.empty() ? std::vector{whole_.replicate} : DivideByShares(whole_.replicate, whole_.split);
    std::vector<dataset::SetFacts> facts;
    for (size_t i = 0; i < writers_.size(); ++i) {
      accepted_ += writers_[i].images();
      const Copies copies{.folder = folders[i],
                          .originals = writers_[i].images(),
                          .wanted = wanted[i],
                          .stop = options_.stop};
      TRY_STATUS(AddCopies(writers_[i], copies, [this] {
        Tell();
        return Status();
      }));
    }
    for (dataset::SetWriter& writer : writers_) facts.push_back(TRY(writer.Finish()));
    return facts;
  }

  int64_t accepted() const { return accepted_; }  // pictures without copies, after Finish

 private:
  Status AddEntry(const PartSet& part, size_t share, const dataset::SetEntry& entry) {
    const bool keep_known = whole_.reject_duplicates || writers_.size() > 1;
    if (keep_known) {
      if (const auto twin = known_.Find(entry.source_hash)) {
        if (whole_.reject_duplicates) {
          const dataset::SetEntry first = TRY(writers_[twin->set].EntryAt(twin->manifest_byte));
          state_.rejected += 1;
          return writers_[share].AddReject(DuplicateOf(first, entry.source, entry.input, entry.source_hash));
        }
        share = twin->set;
      }
      known_.Add(entry.source_hash, {static_cast<uint32_t>(share), writers_[share].manifest_bytes()});
    }
    const Bytes bytes = TRY(dataset::ReadEntry(part.folder, entry));
    state_.bytes_in += std::ssize(bytes.span());
    if (dataset::HashOf(bytes.span()) != entry.hash) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}/{}: the bytes of {} are not those of its manifest: make this part anew",
                              part.folder, entry.path, entry.source));
    }
    return writers_[share].Copy(entry, bytes.span());
  }

  // The first picture of a duplicate's bytes may lie in a part before its own.
  Status AddReject(size_t share, dataset::RejectEntry reject) {
    state_.rejected += 1;
    if (reject.twin_input >= 0) {
      if (const auto twin = known_.Find(reject.source_hash)) {
        const dataset::SetEntry first = TRY(writers_[twin->set].EntryAt(twin->manifest_byte));
        reject = DuplicateOf(first, reject.source, reject.input, reject.source_hash);
      }
    }
    return writers_[share].AddReject(reject);
  }

  void Tell() {
    state_.done += 1;
    state_.total = std::max(state_.total, state_.done);
    if (options_.progress) options_.progress(state_);
  }

  std::vector<dataset::SetWriter> writers_;
  const WholeOptions whole_;
  const JoinOptions& options_;
  Progress& state_;
  KnownContents known_;
  int64_t accepted_ = 0;
};

struct Joined {
  std::vector<dataset::SetFacts> sets;
  int64_t accepted = 0;  // pictures without copies
};

// `parts` in order.
Result<Joined> JoinOne(const std::string& folder, const std::vector<PartSet>& parts,
                       const JoinOptions& options, Progress& state) {
  const WholeOptions whole = TRY(ReadOptions(parts.front().facts));
  const size_t shares = std::max<size_t>(1, whole.split.size());
  std::vector<dataset::SetWriter> writers;
  std::vector<std::string> folders;
  for (size_t i = 0; i < shares; ++i) {
    dataset::SetFacts facts = parts[i].facts;
    facts.part.reset();
    folders.push_back(facts.split.empty() ? folder : folder + "/" + facts.split);
    writers.push_back(TRY(dataset::SetWriter::Resume(folders.back(), facts, facts.shard_bytes, {})));
  }
  Joining joining(std::move(writers), whole, options, state);
  for (size_t i = 0; i < parts.size(); i += shares)
    TRY_STATUS(joining.Add(std::span(parts).subspan(i, shares)));
  Joined joined{.sets = TRY(joining.Finish(folders))};
  joined.accepted = joining.accepted();
  return joined;
}

// Returns the identity of a join.
Json HeadOf(const Works& works) {
  Json head = {{"weir_join", 1}};
  for (const auto& [name, parts] : works) {
    for (const PartSet& part : parts) {
      head[fmt::format("{} part {} {}", name, part.facts.part->index, part.facts.split)] =
          part.facts.manifest_hash + " " + part.facts.rejects_hash;
    }
  }
  return head;
}

std::string FolderOf(const JoinOptions& options, const std::string& variation) {
  return variation.empty() ? options.folder : options.folder + "/" + variation;
}

// The summary of what an earlier join has finished; nullopt where there is none.
Result<std::optional<PrepareSummary>> FindFinished(const Works& works, const JoinOptions& options) {
  std::vector<dataset::SetFacts> sets;
  for (const auto& [name, parts] : works) {
    for (const PartSet& part : parts) {
      const dataset::SetFacts& wanted = part.facts;
      if (wanted.part->index != 1) continue;
      std::string folder = FolderOf(options, name);
      if (!wanted.split.empty()) folder += "/" + wanted.split;
      if (!dataset::PreparedSet::IsSet(folder)) return std::nullopt;
      dataset::SetFacts facts = TRY(dataset::ReadSetFacts(folder));
      if (facts.part || facts.options != wanted.options || facts.inputs_hash != wanted.inputs_hash ||
          facts.format != wanted.format || facts.geometry != wanted.geometry || facts.split != wanted.split) {
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: a finished set of another work is there; remove it, or choose another folder",
                        folder));
      }
      sets.push_back(std::move(facts));
    }
  }
  PrepareSummary summary = SummaryOf(sets);
  summary.was_finished = true;
  return summary;
}

}  // namespace

Result<PrepareSummary> JoinParts(const JoinOptions& options, const Clock& clock) {
  const Instant start = clock.Now();
  Works works;
  for (const std::string& path : options.parts) TRY_STATUS(FindParts(path, 1, works));
  if (works.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no parts are there: give the folder that --part wrote to");
  }
  Progress state;
  for (auto& [name, parts] : works) {
    TRY_STATUS(CheckParts(parts));
    for (const PartSet& part : parts) {
      state.total += part.facts.images;
      for (const auto& [reason, count] : part.facts.rejected) state.total += count;
    }
  }
  if (!Checkpoints::IsThere(options.folder)) {
    if (const auto finished = TRY(FindFinished(works, options))) return *finished;
    TRY_STATUS(dataset::SetWriter::CheckIsFree(options.folder));
  }
  TRY_STATUS(MakeFolders(options.folder));
  const auto opened = TRY(Checkpoints::Open(options.folder, HeadOf(works)));
  std::vector<dataset::SetFacts> sets;
  int64_t accepted = 0;
  for (const auto& [name, parts] : works) {
    Joined joined = TRY(JoinOne(FolderOf(options, name), parts, options, state));
    std::ranges::move(joined.sets, std::back_inserter(sets));
    accepted += joined.accepted;
  }
  TRY_STATUS(opened.checkpoints->Remove());
  PrepareSummary summary = SummaryOf(sets);
  summary.bytes_in = state.bytes_in;
  summary.wall_s = Seconds(clock.Now() - start);
  if (summary.wall_s > 0) summary.images_per_s = static_cast<double>(accepted) / summary.wall_s;
  return summary;
}

}  // namespace weir::prepare
