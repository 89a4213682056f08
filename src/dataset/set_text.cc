#include "dataset/set_text.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/json.h"

namespace weir::dataset {
namespace {

constexpr int kVersion = 1;
constexpr int kMaxSide = 16384;
constexpr int64_t kMaxImages = int64_t{1} << 40;
constexpr int64_t kMaxParts = 1'000'000;
constexpr int64_t kMaxPath = 4096;  // bytes, as Linux has it

template <typename Value, size_t N>
Result<Value> GetWord(const Json& json, std::string_view key, const Choices<Value, N>& choices) {
  const std::string text = TRY(GetString(json, key));
  if (const auto found = FindChoice(choices, text)) return *found;
  return Fail(ErrorCode::kCorrupt,
              fmt::format("key \"{}\": \"{}\" is not known here", key, EscapeBytes(text)));
}

Result<int64_t> GetIntegerWithin(const Json& json, std::string_view key, int64_t low, int64_t high) {
  const int64_t value = TRY(GetInteger(json, key));
  if (value >= low && value <= high) return value;
  return Fail(ErrorCode::kCorrupt,
              fmt::format("key \"{}\": {} is not within {} to {}", key, value, low, high));
}

Result<std::string> GetHash(const Json& json, std::string_view key, size_t digits) {
  std::string hash = TRY(GetString(json, key));
  if (hash.size() == digits && hash.find_first_not_of("0123456789abcdef") == hash.npos) return hash;
  return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is not {} hex digits", key, digits));
}

// The same where the key may be missing: empty then.
Result<std::string> GetHashIfAny(const Json& json, std::string_view key, size_t digits) {
  if (!json.contains(std::string(key))) return std::string();
  return GetHash(json, key, digits);
}

Json SizeJson(const Size& size) { return {{"width", size.width}, {"height", size.height}}; }

// The size under `key`, where there is one.
Result<std::optional<Size>> GetSize(const Json& json, std::string_view key) {
  const auto found = json.find(std::string(key));
  if (found == json.end()) return std::nullopt;
  Size size;
  size.width = static_cast<int>(TRY_CONTEXT(GetIntegerWithin(*found, "width", 1, kMaxSide), key));
  size.height = static_cast<int>(TRY_CONTEXT(GetIntegerWithin(*found, "height", 1, kMaxSide), key));
  return size;
}

Json GeometryJson(const Geometry& geometry) {
  Json json = Json::object();
  PutIfAny(json, "short_side", geometry.short_side);
  if (geometry.resize) json["resize"] = SizeJson(*geometry.resize);
  if (geometry.crop) json["crop"] = SizeJson(*geometry.crop);
  json["channels"] = WordOf(kChannelOrders, geometry.channels);
  json["orientation"] = WordOf(kOrientations, geometry.orientation);
  return json;
}

Result<Geometry> ParseGeometry(const Json& json) {
  Geometry geometry;
  if (json.contains("short_side")) {
    geometry.short_side = static_cast<int>(TRY(GetIntegerWithin(json, "short_side", 1, kMaxSide)));
  }
  geometry.resize = TRY(GetSize(json, "resize"));
  geometry.crop = TRY(GetSize(json, "crop"));
  geometry.channels = TRY(GetWord(json, "channels", kChannelOrders));
  geometry.orientation = TRY(GetWord(json, "orientation", kOrientations));
  return geometry;
}

// The keys of raw sets only.
Status ParseRawFacts(const Json& json, SetFacts& facts) {
  if (!facts.size) return Fail(ErrorCode::kCorrupt, "key \"size\" is missing");
  facts.channels = static_cast<int>(TRY(GetIntegerWithin(json, "channels", 1, 3)));
  if (facts.channels == 2) return Fail(ErrorCode::kCorrupt, "key \"channels\": 2 is neither 1 nor 3");
  facts.records_per_shard = TRY(GetIntegerWithin(json, "records_per_shard", 1, kMaxImages));
  TRY_STATUS(GetIntegerWithin(json, "record_stride", facts.record_stride(), facts.record_stride()));
  return {};
}

// The keys about how it was made may all be missing.
Status ParseMaking(const Json& json, SetFacts& facts) {
  if (const auto options = json.find("options"); options != json.end()) {
    if (!options->is_object()) return Fail(ErrorCode::kCorrupt, "key \"options\" is not an object");
    facts.options = DumpJson(*options);
  }
  if (json.contains("inputs")) facts.inputs = TRY(GetIntegerWithin(json, "inputs", 0, kMaxImages));
  facts.inputs_hash = TRY(GetHashIfAny(json, "inputs_hash", 32));
  if (const auto part = json.find("part"); part != json.end()) {
    facts.part.emplace();
    facts.part->count = TRY_CONTEXT(GetIntegerWithin(*part, "count", 1, kMaxParts), "part");
    facts.part->index = TRY_CONTEXT(GetIntegerWithin(*part, "index", 1, facts.part->count), "part");
  }
  if (json.contains("split")) {
    facts.split = TRY(GetString(json, "split"));
    if (!IsSplitName(facts.split))
      return Fail(ErrorCode::kCorrupt, "key \"split\" is not a name of a folder");
  }
  return {};
}

Status ParseLists(const Json& json, SetFacts& facts) {
  facts.label_rule = LabelRule::kUnknown;
  if (json.contains("label_rule")) {
    const std::string name = TRY(GetString(json, "label_rule"));
    const auto rule = LabelRuleOf(name);
    if (!rule)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("key \"label_rule\": \"{}\" is not known here", EscapeBytes(name)));
    facts.label_rule = *rule;
  }
  if (const auto classes = json.find("classes"); classes != json.end()) {
    if (!classes->is_array()) return Fail(ErrorCode::kCorrupt, "key \"classes\" is not a list");
    for (const Json& name : *classes) {
      if (!name.is_string())
        return Fail(ErrorCode::kCorrupt, "key \"classes\" holds something that is not text");
      facts.classes.push_back(name.get<std::string>());
    }
  }
  const auto rejected = json.find("rejected");
  if (rejected == json.end() || !rejected->is_object()) {
    return Fail(ErrorCode::kCorrupt, "key \"rejected\" is missing or has no reasons");
  }
  for (const auto& item : rejected->items()) {
    facts.rejected[item.key()] = TRY(GetIntegerWithin(*rejected, item.key(), 0, kMaxImages));
  }
  return {};
}

Status CheckVersion(const Json& json) {
  const int64_t version = TRY(GetInteger(json, "weir_set"));
  if (version == kVersion) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format(
          "version {} of a prepared set, and this program reads version {}: {}", version, kVersion,
          version > kVersion ? "use the program that made it, or a newer one" : "prepare the set again"));
}

bool StaysInside(std::string_view path) {
  if (path.empty() || path.starts_with('/') || path.find('\0') != path.npos) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

template <typename Number>
void PutLittleEndian(std::string& out, size_t offset, Number value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(out.data() + offset, &value, sizeof(value));
}

}  // namespace

std::string FormatSetFacts(const SetFacts& facts) {
  Json json = {{"weir_set", kVersion},
               {"format", WordOf(kSetFormats, facts.format)},
               {"images", facts.images},
               {"bytes", facts.bytes}};
  if (facts.geometry) {
    json["geometry"] = GeometryJson(*facts.geometry);
    json["geometry_hash"] = GeometryHash(*facts.geometry);
  }
  if (facts.size) json["size"] = SizeJson(*facts.size);
  if (facts.shard_bytes > 0) json["shard_bytes"] = facts.shard_bytes;
  if (facts.format == SetFormat::kRaw) {
    json["channels"] = facts.channels;
    json["record_stride"] = facts.record_stride();
    json["records_per_shard"] = facts.records_per_shard;
  }
  if (facts.label_rule != LabelRule::kUnknown) json["label_rule"] = ToString(facts.label_rule);
  if (!facts.classes.empty()) json["classes"] = facts.classes;
  json["rejected"] = Json::object();
  for (const auto& [reason, count] : facts.rejected) json["rejected"][reason] = count;
  if (const Result<Json> options = ParseJson(facts.options); options && options->is_object())
    json["options"] = *options;
  if (facts.inputs > 0) json["inputs"] = facts.inputs;
  if (!facts.inputs_hash.empty()) json["inputs_hash"] = facts.inputs_hash;
  if (facts.part) json["part"] = {{"index", facts.part->index}, {"count", facts.part->count}};
  if (!facts.split.empty()) json["split"] = facts.split;
  json["manifest_hash"] = facts.manifest_hash;
  if (!facts.rejects_hash.empty()) json["rejects_hash"] = facts.rejects_hash;
  return DumpJsonIndented(json) + "\n";
}

Result<SetFacts> ParseSetFacts(std::string_view text) {
  const Json json = TRY(ParseJson(text));
  TRY_STATUS(CheckVersion(json));
  SetFacts facts;
  facts.format = TRY(GetWord(json, "format", kSetFormats));
  facts.images = TRY(GetIntegerWithin(json, "images", 0, kMaxImages));
  facts.bytes = TRY(GetIntegerWithin(json, "bytes", 0, INT64_MAX));
  if (const auto geometry = json.find("geometry"); geometry != json.end()) {
    facts.geometry = TRY_CONTEXT(ParseGeometry(*geometry), "geometry");
    if (TRY(GetString(json, "geometry_hash")) != GeometryHash(*facts.geometry)) {
      return Fail(ErrorCode::kCorrupt, "key \"geometry_hash\" does not belong to the geometry");
    }
  }
  facts.size = TRY(GetSize(json, "size"));
  if (facts.format == SetFormat::kRaw) TRY_STATUS(ParseRawFacts(json, facts));
  if (json.contains("shard_bytes"))
    facts.shard_bytes = TRY(GetIntegerWithin(json, "shard_bytes", 1, INT64_MAX));
  TRY_STATUS(ParseLists(json, facts));
  TRY_STATUS(ParseMaking(json, facts));
  facts.manifest_hash = TRY(GetHash(json, "manifest_hash", 32));
  facts.rejects_hash = TRY(GetHashIfAny(json, "rejects_hash", 32));
  return facts;
}

Json MakingOf(const SetFacts& facts) {
  SetFacts kept;
  kept.format = facts.format;
  kept.geometry = facts.geometry;
  kept.size = facts.size;
  kept.channels = facts.channels;
  kept.part = facts.part;
  kept.options = facts.options;
  kept.manifest_hash = std::string(32, '0');
  kept.records_per_shard = 1;
  Json json = ParseJson(FormatSetFacts(kept)).value();
  for (const char* key :
       {"weir_set", "images", "bytes", "label_rule", "rejected", "manifest_hash", "records_per_shard"})
    json.erase(key);
  // One level, so that a difference names the option.
  if (const auto options = json.find("options"); options != json.end()) {
    const Json inner = *options;
    json.erase("options");
    for (const auto& item : inner.items()) json[item.key()] = item.value();
  }
  return json;
}

std::string FormatSetEntry(const SetEntry& entry) {
  Json json = {{"source", entry.source}};
  if (entry.input >= 0) json["input"] = entry.input;
  json["path"] = entry.path;
  if (entry.record >= 0) {
    json["record"] = entry.record;
    json["offset"] = entry.offset;
  }
  PutIfAny(json, "label", entry.label);
  json["hash"] = entry.hash;
  if (!entry.sha256.empty()) json["sha256"] = entry.sha256;
  json["bytes"] = entry.bytes;
  if (entry.width > 0) {
    json["width"] = entry.width;
    json["height"] = entry.height;
  }
  if (!entry.source_hash.empty()) {
    json["source_hash"] = entry.source_hash;
    if (!entry.source_sha256.empty()) json["source_sha256"] = entry.source_sha256;
    json["source_bytes"] = entry.source_bytes;
  }
  if (!entry.recipe.empty()) json["recipe"] = entry.recipe;
  return DumpJson(json);
}

Result<SetEntry> ParseSetEntry(std::string_view line) {
  const Json json = TRY(ParseJson(line));
  SetEntry entry;
  entry.source = TRY(GetString(json, "source"));
  entry.path = TRY(GetString(json, "path"));
  if (!StaysInside(entry.path)) return Fail(ErrorCode::kCorrupt, "key \"path\" leaves the set's folder");
  if (std::ssize(entry.path) > kMaxPath)
    return Fail(ErrorCode::kCorrupt, fmt::format("key \"path\" is of {} bytes", entry.path.size()));
  if (json.contains("input")) entry.input = TRY(GetIntegerWithin(json, "input", 0, kMaxImages));
  if (json.contains("record")) {
    entry.record = TRY(GetIntegerWithin(json, "record", 0, kMaxImages));
    entry.offset = TRY(GetIntegerWithin(json, "offset", 0, INT64_MAX));
  }
  if (json.contains("label"))
    entry.label = static_cast<int>(TRY(GetIntegerWithin(json, "label", 0, INT32_MAX)));
  entry.hash = TRY(GetHash(json, "hash", 32));
  entry.sha256 = TRY(GetHashIfAny(json, "sha256", 64));
  entry.bytes = TRY(GetIntegerWithin(json, "bytes", 0, INT64_MAX - entry.offset));
  if (json.contains("width")) {
    entry.width = static_cast<int>(TRY(GetIntegerWithin(json, "width", 1, INT32_MAX)));
    entry.height = static_cast<int>(TRY(GetIntegerWithin(json, "height", 1, INT32_MAX)));
  }
  entry.source_hash = TRY(GetHashIfAny(json, "source_hash", 32));
  if (!entry.source_hash.empty()) {
    entry.source_sha256 = TRY(GetHashIfAny(json, "source_sha256", 64));
    entry.source_bytes = TRY(GetIntegerWithin(json, "source_bytes", 0, INT64_MAX));
  }
  entry.recipe = TRY(GetHashIfAny(json, "recipe", 16));
  return entry;
}

std::string FormatRejectEntry(const RejectEntry& entry) {
  Json json = {{"source", entry.source}};
  if (entry.input >= 0) json["input"] = entry.input;
  json["reason"] = entry.reason;
  json["detail"] = entry.detail;
  if (entry.twin_input >= 0) {
    json["twin"] = entry.twin;
    json["twin_input"] = entry.twin_input;
  }
  if (!entry.source_hash.empty()) json["source_hash"] = entry.source_hash;
  return DumpJson(json);
}

Result<RejectEntry> ParseRejectEntry(std::string_view line) {
  const Json json = TRY(ParseJson(line));
  RejectEntry entry;
  entry.source = TRY(GetString(json, "source"));
  if (json.contains("input")) entry.input = TRY(GetIntegerWithin(json, "input", 0, kMaxImages));
  entry.reason = TRY(GetString(json, "reason"));
  entry.detail = TRY(GetString(json, "detail"));
  if (json.contains("twin_input")) {
    entry.twin = TRY(GetString(json, "twin"));
    entry.twin_input = TRY(GetIntegerWithin(json, "twin_input", 0, kMaxImages));
  }
  entry.source_hash = TRY(GetHashIfAny(json, "source_hash", 32));
  return entry;
}

bool IsSplitName(std::string_view name) {
  constexpr size_t kMaxSplitName = 100;  // bytes
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
  return !name.empty() && name.size() <= kMaxSplitName && !name.starts_with('.') &&
         !name.starts_with("part-") && name.find_first_not_of(kAllowed) == name.npos;
}

std::string FormatShardHeader(const SetFacts& facts, int64_t first, int64_t records) {
  std::string header(kShardHeaderBytes, '\0');
  header.replace(0, 8, "WEIRRAW1");
  PutLittleEndian(header, 8, static_cast<uint32_t>(facts.size->width));
  PutLittleEndian(header, 12, static_cast<uint32_t>(facts.size->height));
  PutLittleEndian(header, 16, static_cast<uint32_t>(facts.channels));
  PutLittleEndian(header, 20, static_cast<uint32_t>(kShardHeaderBytes));
  PutLittleEndian(header, 24, static_cast<uint64_t>(facts.record_stride()));
  PutLittleEndian(header, 32, static_cast<uint64_t>(records));
  PutLittleEndian(header, 40, static_cast<uint64_t>(first));
  return header;
}

}  // namespace weir::dataset
