#include "feed/store_source.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "dataset/labels.h"
#include "dataset/set_text.h"
#include "dataset/shard_format.h"
#include "dataset/source.h"
#include "feed/local_source.h"
#include "feed/shard_index.h"
#include "object/url.h"

namespace weir::feed {
namespace {

constexpr int kReadsAtOnce = 64;
constexpr uint64_t kMostFactsBytes = 64 << 20, kMostListBytes = uint64_t{16} << 30;

// A folder of a store: the part of the URL below which all keys lie.
struct StoreFolder {
  struct Owner {
    SteadyClock clock;
    object::SourceSet sources{{}, clock};
  };
  std::shared_ptr<Owner> owner = std::make_shared<Owner>();
  std::shared_ptr<object::ObjectSource> objects;
  std::string prefix;  // empty, or with a slash at its end
  bool is_http = false;

  static Result<StoreFolder> Open(const std::string& url) {
    StoreFolder folder;
    auto [objects, key] = TRY(folder.owner->sources.Open(url));
    folder.objects = std::move(objects);
    folder.prefix = std::move(key);
    if (!folder.prefix.empty() && !folder.prefix.ends_with('/')) folder.prefix += '/';
    folder.is_http = !url.starts_with("s3://");
    return folder;
  }
  // A key of S3 is raw bytes, a path of HTTP as it goes over the wire.
  std::string KeyOf(std::string_view name) const {
    return prefix + (is_http ? object::EncodeUri(name, object::Slash::kKeep) : std::string(name));
  }
  Result<Bytes> ReadFile(std::string_view name, uint64_t max_bytes) const {
    return object::ReadWhole(*objects, {.key = KeyOf(name), .max_bytes = max_bytes});
  }
};

uint64_t HashOfETag(std::string_view etag) {
  return etag.empty() ? 0 : XXH3_64bits(etag.data(), etag.size());
}

image::Reject RejectOfStore(const Error& error) {
  using enum image::RejectReason;
  // A sample that is missing, changed or too large is at fault itself; otherwise the store is.
  if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt)
    return {kVanished, error.message};
  if (error.code == ErrorCode::kInvalidArgument && error.message.contains("more than the limit of"))
    return {kTooManyBytes, error.message};
  return {kUnreachable, error.message};
}

// The place of a sample in a store, and what its bytes must be.
struct ObjectPlace {
  object::ObjectSource::Read read;
  uint64_t etag_hash = 0;  // 0: any
};

// The part that all sources of a store have in common.
class StoreSource : public Source {
 public:
  explicit StoreSource(StoreFolder folder) : folder_(std::move(folder)) {}

  std::string Name(int64_t sample) const override {
    return folder_.objects->NameOf(PlaceOf(sample).read.key);
  }
  int reads_wanted() const override { return kReadsAtOnce; }

  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    ObjectPlace place = PlaceOf(sample);
    auto response = object::ReadRange(*folder_.objects, std::move(place.read));
    const Bytes bytes = TRY(Take(std::move(response), place.etag_hash));
    const std::span<std::byte> into = buffer.Get(bytes.size());
    if (!bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
    TRY_STATUS(Check(sample, into));
    return into;
  }
  Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const override;

 protected:
  virtual ObjectPlace PlaceOf(int64_t sample) const = 0;

 private:
  class Reads;

  static image::Accepted<Bytes> Take(Result<object::Response> response, uint64_t etag_hash) {
    if (!response) return std::unexpected(RejectOfStore(response.error()));
    if (etag_hash != 0 && HashOfETag(response->etag) != etag_hash) {
      return std::unexpected(
          image::Reject{image::RejectReason::kVanished, "the object was changed after it was listed"});
    }
    return std::move(response->body);
  }

  const StoreFolder folder_;
};

class StoreSource::Reads final : public SampleReads {
 public:
  explicit Reads(const StoreSource& source) : source_(source) {}
  ~Reads() override {
    const MutexLock lock(shared_->mutex);
    shared_->ended = true;
  }
  void Start(int64_t sample, Done done) override {
    ObjectPlace place = source_.PlaceOf(sample);
    // ObjectSource wants a function that can be copied.
    const auto kept = std::make_shared<Done>(std::move(done));
    source_.folder_.objects->Start(std::move(place.read), [shared = shared_, kept, hash = place.etag_hash](
                                                              Result<object::Response> response) {
      image::Accepted<Bytes> bytes = Take(std::move(response), hash);
      const MutexLock lock(shared->mutex);
      if (!shared->ended) (*kept)(std::move(bytes));
    });
  }

 private:
  struct Shared {
    Mutex mutex;
    bool ended GUARDED_BY(mutex) = false;
  };
  const StoreSource& source_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

Result<std::unique_ptr<SampleReads>> StoreSource::ReadMany(int) const {
  return std::make_unique<Reads>(*this);
}

// Objects that are one picture each.
class ObjectFiles final : public StoreSource {
 public:
  // `has_hashes`: the index has hashes of contents, and not of ETags.
  ObjectFiles(StoreFolder folder, std::shared_ptr<const FileIndex> index, bool has_hashes, bool verify)
      : StoreSource(folder),
        folder_(std::move(folder)),
        index_(std::move(index)),
        has_hashes_(has_hashes),
        verify_(verify) {}

  int64_t size() const override { return index_->size(); }
  const std::vector<std::string>& classes() const override { return index_->classes(); }
  int32_t Label(int64_t sample) const override { return index_->entry(sample).label; }
  const std::string& hash() const override { return index_->set_hash(); }
  const FileIndex* files() const override { return index_.get(); }
  image::Accepted<void> Check(int64_t sample, std::span<const std::byte> bytes) const override {
    if (!verify_ || !has_hashes_) return {};
    return CheckHash(bytes, index_->entry(sample).hash);
  }
  uint64_t Version(int64_t sample) const override {
    const uint64_t hash = index_->entry(sample).hash;
    if (has_hashes_ || hash == 0) return hash;
    // The ETag alone does not tell two objects of the same bytes apart, and need not.
    return XXH3_64bits_withSeed(&index_->entry(sample).bytes, sizeof(uint64_t), hash);
  }

 private:
  ObjectPlace PlaceOf(int64_t sample) const override {
    const FileIndex::Entry& entry = index_->entry(sample);
    ObjectPlace place;
    place.read.key = folder_.KeyOf(index_->name(sample));
    place.read.max_bytes = dataset::kMaxFileBytes;
    if (entry.bytes > 0) {
      place.read.size = static_cast<int64_t>(entry.bytes);
      place.read.max_bytes = std::min(dataset::kMaxFileBytes, entry.bytes + 1);
    }
    if (!has_hashes_) place.etag_hash = entry.hash;
    return place;
  }

  const StoreFolder folder_;
  const std::shared_ptr<const FileIndex> index_;
  const bool has_hashes_, verify_;
};

// Records of shards: ranges of objects.
class ObjectShards final : public StoreSource {
 public:
  ObjectShards(StoreFolder folder, dataset::SetFacts facts, Bytes index, ShardIndex view, bool verify)
      : StoreSource(folder),
        folder_(std::move(folder)),
        facts_(std::move(facts)),
        index_(std::move(index)),
        records_(view.records),
        verify_(verify) {}

  int64_t size() const override { return facts_.images; }
  const std::vector<std::string>& classes() const override { return facts_.classes; }
  int32_t Label(int64_t sample) const override { return record(sample).label; }
  std::string Name(int64_t sample) const override {
    return fmt::format("{}#{}", StoreSource::Name(sample), sample);
  }
  const std::string& hash() const override { return facts_.manifest_hash; }
  std::optional<RawShape> raw() const override {
    if (facts_.format != dataset::SetFormat::kRaw) return std::nullopt;
    return RawShape{facts_.size->width, facts_.size->height, facts_.channels};
  }
  // A network may change what a disk does not, so raw records are checked as well.
  image::Accepted<void> Check(int64_t sample, std::span<const std::byte> bytes) const override {
    if (bytes.size() != record(sample).bytes)
      return std::unexpected(image::Reject{image::RejectReason::kVanished, "its shard became shorter"});
    return verify_ ? CheckHash(bytes, record(sample).hash) : image::Accepted<void>();
  }
  uint64_t Version(int64_t sample) const override { return record(sample).hash; }

 private:
  const ShardRecord& record(int64_t sample) const { return records_[static_cast<size_t>(sample)]; }
  ObjectPlace PlaceOf(int64_t sample) const override {
    const ShardRecord& wanted = record(sample);
    ObjectPlace place;
    place.read.key = folder_.KeyOf(dataset::ShardPath(facts_.format, wanted.shard));
    place.read.range = object::Range{static_cast<int64_t>(wanted.offset), static_cast<int64_t>(wanted.bytes)};
    place.read.size = static_cast<int64_t>(wanted.bytes);
    place.read.max_bytes = wanted.bytes + 1;
    return place;
  }

  const StoreFolder folder_;
  const dataset::SetFacts facts_;
  const Bytes index_;
  const std::span<const ShardRecord> records_;
  const bool verify_;
};

Result<std::shared_ptr<const Source>> OpenStoredSet(StoreFolder folder, const std::string& url,
                                                    const Bytes& facts_text, const SourceOptions& options) {
  dataset::SetFacts facts = TRY_CONTEXT(dataset::ParseSetFacts(facts_text.text()), url + "/set.json");
  if (facts.images == 0) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: the set is empty", url));
  if (facts.format == dataset::SetFormat::kFiles) {
    const Bytes text = TRY(folder.ReadFile("manifest.jsonl", kMostListBytes));
    auto index = TRY_CONTEXT(ReadManifest(text.text(), facts), url + "/manifest.jsonl");
    TRY_STATUS(CheckLabelRule(facts, HasLabels(*index), url));
    return std::make_shared<ObjectFiles>(std::move(folder), std::move(index), true, options.verify);
  }
  Bytes index = TRY(folder.ReadFile("index.bin", kMostListBytes));
  ShardIndex view = TRY(ReadShardIndex(index.span(), facts, url + "/index.bin"));
  return std::make_shared<ObjectShards>(std::move(folder), std::move(facts), std::move(index),
                                        std::move(view), options.verify);
}

// Returns whether `a` comes before `b` as a walk through folders meets them: in each folder its files, then
// its folders, each in byte order.
bool ComesBefore(std::string_view a, std::string_view b) {
  while (true) {
    const size_t end_a = a.find('/'), end_b = b.find('/');
    if (end_a == a.npos || end_b == b.npos) {
      if ((end_a == a.npos) != (end_b == b.npos)) return end_a == a.npos;
      return a < b;
    }
    const std::string_view first_a = a.substr(0, end_a), first_b = b.substr(0, end_b);
    if (first_a != first_b) return first_a < first_b;
    a.remove_prefix(end_a + 1);
    b.remove_prefix(end_b + 1);
  }
}

Result<std::shared_ptr<const FileIndex>> ListPictures(const StoreFolder& folder, const std::string& url,
                                                      bool by_classes) {
  const std::vector<object::ListedObject> objects = TRY(folder.objects->List(folder.prefix));
  if (objects.empty()) return Fail(ErrorCode::kNotFound, fmt::format("{}: no object is there", url));
  auto index = TRY_CONTEXT(IndexOfObjects(objects, folder.prefix, by_classes), url);
  if (index->size() == 0) return NoPictures(url);
  return index;
}

std::string WithoutSlash(const std::string& url) {
  return url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
}

}  // namespace

Result<std::shared_ptr<const FileIndex>> IndexOfObjects(std::span<const object::ListedObject> objects,
                                                        std::string_view prefix, bool by_classes) {
  struct Found {
    std::string_view name;
    const object::ListedObject* object;
  };
  std::vector<Found> found;
  std::map<std::string_view, int32_t> labels;  // by folder
  for (const object::ListedObject& object : objects) {
    const std::string_view name = std::string_view(object.key).substr(prefix.size());
    if (dataset::IsHiddenName(name) || !dataset::IsNamedLikeAPicture(name)) continue;
    found.push_back({name, &object});
    const auto folder = dataset::ClassFolderOf(name);
    if (by_classes && folder) labels.emplace(*folder, 0);
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) { return ComesBefore(a.name, b.name); });
  std::vector<std::string_view> texts;
  for (const auto& [folder, label] : labels) texts.push_back(folder);
  dataset::NumberedLabels numbered = TRY(dataset::NumberLabels(texts));
  for (auto next = numbered.labels.begin(); auto& [folder, label] : labels) label = *next++;
  FileIndex::Builder builder;
  for (const Found& one : found) {
    int32_t label = -1;
    if (!labels.empty()) {
      const auto folder = dataset::ClassFolderOf(one.name);
      if (!folder) continue;  // beside the classes' folders
      label = labels.at(*folder);
    }
    builder.Add(one.name, label, static_cast<uint64_t>(one.object->size), HashOfETag(one.object->etag));
  }
  return std::move(builder).Finish(std::move(numbered.classes), "");
}

Result<std::shared_ptr<const Source>> OpenStore(const std::string& url, const SourceOptions& options) {
  if (!options.index.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: an index file is for a folder of this machine: leave it out", url));
  }
  StoreFolder folder = TRY(StoreFolder::Open(url));
  const std::string shown = WithoutSlash(url);
  const Result<Bytes> facts = folder.ReadFile("set.json", kMostFactsBytes);
  if (facts) return OpenStoredSet(std::move(folder), shown, *facts, options);
  if (facts.error().code != ErrorCode::kNotFound) return std::unexpected(facts.error());
  if (folder.is_http) {
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("{}: no set.json is there: a web server has no listing, so give a prepared set", shown));
  }
  auto index = TRY(ListPictures(folder, shown, true));
  return std::make_shared<ObjectFiles>(std::move(folder), std::move(index), false, options.verify);
}

Result<std::shared_ptr<const Source>> OpenStoreOfMasks(const std::string& url, const FileIndex& pictures,
                                                       const SourceOptions& options) {
  StoreFolder folder = TRY(StoreFolder::Open(url));
  const std::string shown = WithoutSlash(url);
  const auto all = TRY(ListPictures(folder, shown, false));
  auto index = TRY(MatchMasks(pictures, *all, shown));
  return std::make_shared<ObjectFiles>(std::move(folder), std::move(index), false, options.verify);
}

}  // namespace weir::feed
