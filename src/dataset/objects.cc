#include "dataset/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "object/mirror.h"
#include "object/read_ahead.h"
#include "object/source.h"
#include "object/url.h"

namespace weir::dataset {
namespace {

// All that one argument's objects need, in the order in which it may end.
struct OpenStore {
  SteadyClock clock;
  object::SourceSet sources{{}, clock};
  std::optional<object::ReadAhead> ahead;
};

// `otherwise` is for a store that did not give the object.
image::Reject RejectOfObject(const Error& error, image::RejectReason not_found,
                             image::RejectReason otherwise) {
  using enum image::RejectReason;
  switch (error.code) {
    case ErrorCode::kNotFound:
      return {not_found, error.message};
    case ErrorCode::kUnsupported:
      return {kUnsupported, error.message};
    case ErrorCode::kInvalidArgument:
      return {error.message.contains("more than the limit of") ? kTooManyBytes : otherwise, error.message};
    default:
      return {otherwise, error.message};
  }
}

// Appends `more`, which was listed by itself.
void Append(Listing more, Listing& listing) {
  const int sets = static_cast<int>(listing.sets.size());
  for (Input& input : more.inputs) {
    if (input.set >= 0) input.set += sets;
    listing.inputs.push_back(std::move(input));
  }
  std::ranges::move(more.skipped, std::back_inserter(listing.skipped));
  std::ranges::move(more.sets, std::back_inserter(listing.sets));
}

// The prefixes below which a prepared set lies, each with its slash; "" for one at the top. Of each whether
// it was added.
using SetPrefixes = std::map<std::string, bool, std::less<>>;

SetPrefixes FindSets(const std::vector<object::ListedObject>& objects, const std::string& prefix) {
  constexpr std::string_view kFacts = "set.json";
  SetPrefixes sets;
  for (const object::ListedObject& object : objects) {
    const std::string_view name = std::string_view(object.key).substr(prefix.size());
    if (!name.ends_with(kFacts)) continue;
    const std::string_view folder = name.substr(0, name.size() - kFacts.size());
    if (folder.empty() || folder.ends_with('/')) sets.emplace(folder, false);
  }
  return sets;
}

// Returns the outermost set that the name lies in.
SetPrefixes::iterator SetOf(std::string_view name, SetPrefixes& sets) {
  auto set = sets.find(std::string_view());
  for (size_t end = name.find('/'); set == sets.end() && end != name.npos; end = name.find('/', end + 1))
    set = sets.find(name.substr(0, end + 1));
  return set;
}

// The objects below a prefix, in the order of their keys; a set where its first object stands.
Status AddObjects(const std::string& url, const std::string& prefix,
                  const std::vector<object::ListedObject>& objects, const std::shared_ptr<OpenStore>& store,
                  const std::shared_ptr<object::ObjectSource>& source, Listing& listing) {
  const std::string base = url.substr(0, url.size() - prefix.size());
  SetPrefixes sets = FindSets(objects, prefix);
  std::vector<object::ReadAhead::Item> items;
  const int number = static_cast<int>(listing.stores.size());
  for (const object::ListedObject& object : objects) {
    const std::string_view name = std::string_view(object.key).substr(prefix.size());
    if (const auto set = SetOf(name, sets); set != sets.end()) {
      if (std::exchange(set->second, true)) continue;
      Append(TRY(ListInputs({TRY(object::Localise(store->sources, base + prefix + set->first))})), listing);
      continue;
    }
    if (name.empty() || name.ends_with('/')) continue;  // how consoles show folders
    const std::string whole = base + object.key;
    const size_t folder_bytes = base.size() + prefix.size();
    if (IsHiddenName(name)) {
      listing.skipped.push_back({whole, "hidden", image::RejectReason::kHidden, folder_bytes});
    } else if (!IsNamedLikeAPicture(name)) {
      NotTaken why = WhyNotTaken(name, "not a picture by name");
      listing.skipped.push_back({whole, std::move(why.why), why.reason, folder_bytes});
    } else {
      Input& input = listing.inputs.emplace_back();
      input.name = whole;
      input.folder_bytes = folder_bytes;
      input.store = number;
      input.object = std::ssize(items);
      items.push_back({.key = object.key, .etag = object.etag, .size = object.size});
    }
  }
  store->ahead.emplace(source, std::move(items));
  listing.stores.emplace_back(store, &*store->ahead);
  return {};
}

}  // namespace

bool IsObjectUrl(std::string_view text) { return object::IsObjectUrl(text); }

Status ListObjects(const std::string& url, Listing& listing) {
  const auto store = std::make_shared<OpenStore>();
  const auto [source, key] = TRY(store->sources.Open(url));
  if (url.starts_with("s3://")) {
    std::string folder = url, prefix = key;
    if (!folder.ends_with('/')) folder += '/';
    if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
    const std::vector<object::ListedObject> objects = TRY(source->List(prefix));
    if (!objects.empty()) return AddObjects(folder, prefix, objects, store, source, listing);
    if (prefix == key) return Fail(ErrorCode::kNotFound, fmt::format("{}: no object is there", url));
  }
  object::ReadAhead::Item item{.key = key};
  if (url.starts_with("s3://")) {
    const object::ObjectFacts facts = TRY(source->Facts(key));
    item.etag = facts.etag;
    item.size = facts.size;
  }
  Input& input = listing.inputs.emplace_back();
  input.name = source->NameOf(key);
  input.folder_bytes = input.name.rfind('/') + 1;
  input.store = static_cast<int>(listing.stores.size());
  input.object = 0;
  store->ahead.emplace(source, std::vector{std::move(item)});
  listing.stores.emplace_back(store, &*store->ahead);
  return {};
}

image::Accepted<Bytes> LoadObject(const Listing& listing, const Input& input, uint64_t max_bytes) {
  Result<Bytes> bytes = listing.stores[static_cast<size_t>(input.store)]->Load(input.object, max_bytes);
  if (!bytes)
    return std::unexpected(
        RejectOfObject(bytes.error(), image::RejectReason::kVanished, image::RejectReason::kVanished));
  return *std::move(bytes);
}

std::string StateOfObject(const Listing& listing, const Input& input) {
  const object::ReadAhead::Item& item = listing.stores[static_cast<size_t>(input.store)]->item(input.object);
  return fmt::format("{} bytes {}", item.size.value_or(-1), item.etag);
}

struct ObjectReader::State {
  explicit State(const Options& options)
      : sources({.environment = {}, .retries = options.retries, .timeout = options.timeout}, clock) {}

  SteadyClock clock;
  object::SourceSet sources;
};

ObjectReader::ObjectReader(Options options) : state_(std::make_unique<State>(options)) {}

ObjectReader::~ObjectReader() = default;

image::Accepted<Bytes> ObjectReader::Read(const std::string& url, uint64_t max_bytes,
                                          const std::stop_token& stop) const {
  const auto read = [&]() -> Result<Bytes> {
    const auto [source, key] = TRY(state_->sources.Open(url));
    return object::ReadWhole(*source, {.key = key, .max_bytes = max_bytes}, stop);
  };
  Result<Bytes> bytes = read();
  if (!bytes)
    return std::unexpected(
        RejectOfObject(bytes.error(), image::RejectReason::kMissing, image::RejectReason::kUnreachable));
  return *std::move(bytes);
}

Result<std::string> ObjectReader::CopyOf(const std::string& url, const std::stop_token& stop) const {
  return object::Localise(state_->sources, url, {.stop = stop});
}

Status ObjectReader::CheckPublish(const std::string& url, const std::stop_token& stop) const {
  if (!url.starts_with("s3://"))
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: a set is written to a folder or to s3://", url));
  const auto [source, key] = TRY(state_->sources.Open(url));
  TRY_STATUS(source->List(key + "/set.json", stop));
  return {};
}

Result<int64_t> ObjectReader::Publish(const std::string& folder, const std::string& url,
                                      const std::stop_token& stop) const {
  return TRY(object::Publish(state_->sources, folder, url, {.stop = stop})).copied;
}

Result<std::string> StagingFolderOf(const std::string& url) {
  return object::StagingFolder(object::ProcessEnvironment(), url);
}

}  // namespace weir::dataset
