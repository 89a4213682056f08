#include "data/set_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "base/json.h"

namespace weir::data {
namespace {

constexpr int kVersion = 1;
constexpr int kMaxSide = 16384;
constexpr int64_t kMaxImages = int64_t{1} << 40;

template <typename Value>
struct Word {
  Value value;
  const char* name;
};
constexpr Word<SetFormat> kFormats[] = {{SetFormat::kFiles, "files"}, {SetFormat::kRaw, "raw"}};
constexpr Word<Channels> kChannelOrders[] = {
    {Channels::kRgb, "RGB"}, {Channels::kBgr, "BGR"}, {Channels::kGrey, "GRAY"}};
constexpr Word<Orientation> kOrientations[] = {{Orientation::kExif, "exif"},
                                               {Orientation::kIgnore, "ignore"}};

template <typename Value, size_t N>
std::string NameOf(Value value, const Word<Value> (&words)[N]) {
  for (const auto& word : words) {
    if (word.value == value) return word.name;
  }
  return "";
}

template <typename Value, size_t N>
Result<Value> GetWord(const Json& json, std::string_view key, const Word<Value> (&words)[N]) {
  const std::string text = TRY(GetString(json, key));
  for (const auto& word : words) {
    if (text == word.name) return word.value;
  }
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
  json["channels"] = NameOf(geometry.channels, kChannelOrders);
  json["orientation"] = NameOf(geometry.orientation, kOrientations);
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

Status ParseLists(const Json& json, SetFacts& facts) {
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
               {"format", NameOf(facts.format, kFormats)},
               {"images", facts.images},
               {"bytes", facts.bytes}};
  if (facts.geometry) {
    json["geometry"] = GeometryJson(*facts.geometry);
    json["geometry_hash"] = GeometryHash(*facts.geometry);
  }
  if (facts.size) json["size"] = SizeJson(*facts.size);
  if (facts.format == SetFormat::kRaw) {
    json["channels"] = facts.channels;
    json["record_stride"] = facts.record_stride();
    json["records_per_shard"] = facts.records_per_shard;
  }
  if (!facts.classes.empty()) json["classes"] = facts.classes;
  json["rejected"] = Json::object();
  for (const auto& [reason, count] : facts.rejected) json["rejected"][reason] = count;
  json["manifest_hash"] = facts.manifest_hash;
  return DumpJsonIndented(json) + "\n";
}

Result<SetFacts> ParseSetFacts(std::string_view text) {
  const Json json = TRY(ParseJson(text));
  TRY_STATUS(GetIntegerWithin(json, "weir_set", kVersion, kVersion));
  SetFacts facts;
  facts.format = TRY(GetWord(json, "format", kFormats));
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
  TRY_STATUS(ParseLists(json, facts));
  facts.manifest_hash = TRY(GetHash(json, "manifest_hash", 32));
  return facts;
}

std::string FormatSetEntry(const SetEntry& entry) {
  Json json = {{"source", entry.source}, {"path", entry.path}};
  if (entry.record >= 0) json["record"] = entry.record;
  PutIfAny(json, "label", entry.label);
  json["hash"] = entry.hash;
  json["bytes"] = entry.bytes;
  return DumpJson(json);
}

Result<SetEntry> ParseSetEntry(std::string_view line) {
  const Json json = TRY(ParseJson(line));
  SetEntry entry;
  entry.source = TRY(GetString(json, "source"));
  entry.path = TRY(GetString(json, "path"));
  if (!StaysInside(entry.path)) return Fail(ErrorCode::kCorrupt, "key \"path\" leaves the set's folder");
  if (json.contains("record")) entry.record = TRY(GetIntegerWithin(json, "record", 0, kMaxImages));
  if (json.contains("label"))
    entry.label = static_cast<int>(TRY(GetIntegerWithin(json, "label", 0, INT32_MAX)));
  entry.hash = TRY(GetHash(json, "hash", 32));
  entry.bytes = TRY(GetIntegerWithin(json, "bytes", 0, INT64_MAX));
  return entry;
}

std::string HashOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string ShardPath(int64_t shard) { return fmt::format("shards/{:06}.raw", shard); }

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

}  // namespace weir::data
