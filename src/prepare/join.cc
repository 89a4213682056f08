#include "prepare/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/file.h"
#include "data/hash.h"
#include "data/line_reader.h"
#include "data/set_text.h"
#include "prepare/checkpoint.h"
#include "prepare/copies.h"
#include "prepare/known_contents.h"

namespace weir::prepare {
namespace {

struct PartSet {
  std::string folder;
  data::SetFacts facts;
};
// By the name of the variation; "" where there are none.
using Works = std::map<std::string, std::vector<PartSet>>;

Result<PartSet> ReadPart(const std::string& folder) {
  PartSet part{folder, TRY(data::ReadSetFacts(folder))};
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

// The parts at `folder`: it is one, or holds one of each variation (`depth` 1), or holds such folders.
Status FindParts(const std::string& folder, int depth, Works& works) {
  if (data::PreparedSet::IsSet(folder)) {
    works[""].push_back(TRY(ReadPart(folder)));
    return {};
  }
  if (Checkpoints::IsThere(folder) || data::PreparedSet::IsUnfinished(folder)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: this part is not finished: run its command again", folder));
  }
  for (const std::string& name : TRY(SubFolders(folder))) {
    const std::string inside = folder + "/" + name;
    const bool of_parts = name.starts_with("part-");
    if (!of_parts && data::PreparedSet::IsSet(inside)) {
      works[name].push_back(TRY(ReadPart(inside)));
    } else if (depth > 0 && of_parts) {
      TRY_STATUS(FindParts(inside, depth - 1, works));
    }
  }
  return {};
}

// That the parts are those of one work, and all of them; puts them in order.
Status CheckParts(std::vector<PartSet>& parts) {
  const data::SetFacts& first = parts.front().facts;
  std::ranges::sort(parts, {}, [](const PartSet& part) { return part.facts.part->index; });
  for (size_t i = 0; i < parts.size(); ++i) {
    const data::SetFacts& facts = parts[i].facts;
    if (facts.part->count != first.part->count || facts.options != first.options ||
        facts.inputs_hash != first.inputs_hash || facts.format != first.format ||
        facts.geometry != first.geometry || facts.classes != first.classes) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{} and {} are parts of different works",
                                                           parts.front().folder, parts[i].folder));
    }
    if (facts.part->index == static_cast<int64_t>(i) + 1) continue;
    const bool twice = i > 0 && parts[i - 1].facts.part->index == facts.part->index;
    return Fail(ErrorCode::kInvalidArgument,
                twice ? fmt::format("{}: part {} is there twice", parts[i].folder, facts.part->index)
                      : fmt::format("part {} of {} is missing", i + 1, first.part->count));
  }
  if (std::ssize(parts) == first.part->count) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("part {} of {} is missing", parts.size() + 1, first.part->count));
}

// The lines of both lists of one part, in the order of their inputs.
class PartReader {
 public:
  static Result<PartReader> Open(const std::string& folder) {
    PartReader reader(TRY(data::LineReader::Open(folder + "/manifest.jsonl")),
                      TRY(data::LineReader::Open(folder + "/rejects.jsonl")), folder);
    TRY_STATUS(reader.NextEntry());
    TRY_STATUS(reader.NextReject());
    return reader;
  }

  bool done() const { return !entry_ && !reject_; }
  bool entry_is_next() const { return entry_ && (!reject_ || entry_->input < reject_->input); }
  // REQUIRES: that one is next.
  Result<data::SetEntry> TakeEntry() {
    data::SetEntry entry = *std::move(entry_);
    TRY_STATUS(NextEntry());
    return entry;
  }
  Result<data::RejectEntry> TakeReject() {
    data::RejectEntry entry = *std::move(reject_);
    TRY_STATUS(NextReject());
    return entry;
  }

 private:
  PartReader(data::LineReader manifest, data::LineReader rejects, std::string folder)
      : manifest_(std::move(manifest)), rejects_(std::move(rejects)), folder_(std::move(folder)) {}

  Status NextEntry() {
    const auto line = TRY(manifest_.Next());
    entry_.reset();
    if (line) entry_ = TRY_CONTEXT(data::ParseSetEntry(*line), folder_ + "/manifest.jsonl");
    return {};
  }
  Status NextReject() {
    const auto line = TRY(rejects_.Next());
    reject_.reset();
    if (line) reject_ = TRY_CONTEXT(data::ParseRejectEntry(*line), folder_ + "/rejects.jsonl");
    return {};
  }

  data::LineReader manifest_, rejects_;
  std::string folder_;
  std::optional<data::SetEntry> entry_;
  std::optional<data::RejectEntry> reject_;
};

// Of the parts' options, those that are for the whole.
struct WholeOptions {
  int64_t replicate = 0;
  bool reject_duplicates = false;
};
Result<WholeOptions> ReadOptions(const data::SetFacts& facts) {
  const Json json = TRY_CONTEXT(ParseJson(facts.options), "set.json: options");
  WholeOptions options;
  if (json.contains("replicate")) options.replicate = TRY(GetInteger(json, "replicate"));
  options.reject_duplicates = json.contains("reject_duplicates");
  return options;
}

// Writes one joined set.
class Joining {
 public:
  Joining(data::SetWriter writer, const WholeOptions& whole, const JoinOptions& options, Progress& state)
      : writer_(std::move(writer)), whole_(whole), options_(options), state_(state) {}

  Status Add(const PartSet& part) {
    PartReader reader = TRY(PartReader::Open(part.folder));
    while (!reader.done()) {
      if (options_.stop.stop_requested())
        return Fail(ErrorCode::kCancelled, "stopped while joining: the same command begins it anew");
      TRY_STATUS(reader.entry_is_next() ? AddEntry(part, TRY(reader.TakeEntry()))
                                        : AddReject(TRY(reader.TakeReject())));
      Tell();
    }
    return {};
  }

  Result<data::SetFacts> Finish(const std::string& folder) {
    const Copies copies{
        .folder = folder, .originals = writer_.images(), .wanted = whole_.replicate, .stop = options_.stop};
    TRY_STATUS(AddCopies(writer_, copies, [this] {
      Tell();
      return Status();
    }));
    return writer_.Finish();
  }

 private:
  Status AddEntry(const PartSet& part, const data::SetEntry& entry) {
    const std::string source = TRY(UnescapeBytes(entry.source));
    if (whole_.reject_duplicates && !known_.Add(entry.source_hash)) {
      state_.rejected += 1;
      return writer_.AddReject(source, entry.input, data::ToString(data::RejectReason::kDuplicate),
                               KnownContents::Detail(entry.source_hash));
    }
    const Bytes bytes = TRY(data::ReadEntry(part.folder, entry));
    state_.bytes_in += std::ssize(bytes.span());
    if (data::HashOf(bytes.span()) != entry.hash) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}/{}: the bytes of {} are not those of its manifest: make this part anew",
                              part.folder, entry.path, entry.source));
    }
    return writer_.Copy(entry, bytes.span());
  }

  Status AddReject(const data::RejectEntry& entry) {
    const std::string source = TRY(UnescapeBytes(entry.source));
    const std::string detail = TRY(UnescapeBytes(entry.detail));
    state_.rejected += 1;
    return writer_.AddReject(source, entry.input, entry.reason, detail);
  }

  void Tell() {
    state_.done += 1;
    state_.total = std::max(state_.total, state_.done);
    if (options_.progress) options_.progress(state_);
  }

  data::SetWriter writer_;
  const WholeOptions whole_;
  const JoinOptions& options_;
  Progress& state_;
  KnownContents known_;
};

Result<data::SetFacts> JoinOne(const std::string& folder, const std::vector<PartSet>& parts,
                               const JoinOptions& options, Progress& state) {
  data::SetFacts facts = parts.front().facts;
  facts.part.reset();
  const WholeOptions whole = TRY(ReadOptions(facts));
  data::SetWriter writer = TRY(data::SetWriter::Resume(folder, facts, facts.shard_bytes, {}));
  Joining joining(std::move(writer), whole, options, state);
  for (const PartSet& part : parts) TRY_STATUS(joining.Add(part));
  return joining.Finish(folder);
}

// What tells one join from another.
Json HeadOf(const Works& works) {
  Json head = {{"weir_join", 1}};
  for (const auto& [name, parts] : works) {
    for (const PartSet& part : parts) {
      head[fmt::format("{} part {}", name, part.facts.part->index)] =
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
  std::vector<data::SetFacts> sets;
  for (const auto& [name, parts] : works) {
    const std::string folder = FolderOf(options, name);
    if (!data::PreparedSet::IsSet(folder)) return std::nullopt;
    data::SetFacts facts = TRY(data::ReadSetFacts(folder));
    const data::SetFacts& wanted = parts.front().facts;
    if (facts.part || facts.options != wanted.options || facts.inputs_hash != wanted.inputs_hash ||
        facts.format != wanted.format || facts.geometry != wanted.geometry) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: a finished set of another work is there; remove it, or choose another folder",
                      folder));
    }
    sets.push_back(std::move(facts));
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
    TRY_STATUS(data::SetWriter::CheckIsFree(options.folder));
  }
  TRY_STATUS(MakeFolders(options.folder));
  const auto opened = TRY(Checkpoints::Open(options.folder, HeadOf(works)));
  std::vector<data::SetFacts> sets;
  for (const auto& [name, parts] : works) {
    sets.push_back(TRY(JoinOne(FolderOf(options, name), parts, options, state)));
  }
  TRY_STATUS(opened.checkpoints->Remove());
  PrepareSummary summary = SummaryOf(sets);
  summary.bytes_in = state.bytes_in;
  summary.wall_s = Seconds(clock.Now() - start);
  if (summary.wall_s > 0) summary.images_per_s = static_cast<double>(state.done) / summary.wall_s;
  return summary;
}

}  // namespace weir::prepare
