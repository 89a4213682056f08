#include "identity/manifest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/fields.h"
#include "base/json.h"
#include "base/text.h"
#include "identity/code.h"

namespace weir::identity {
namespace {

constexpr std::string_view kName = "weir identities ", kVersion = "2";
constexpr size_t kMostFiles = 10'000;

struct ManifestText {
  std::string format = fmt::format("{}{}", kName, kVersion);
  Manifest manifest;
};

uint64_t Checksum(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

template <typename F>
void Describe(F& fields, Described<F, Manifest::SegmentEntry>& entry) {
  fields("number", entry.number);
  fields("rows", entry.rows);
  fields("probes", entry.probes);
  fields("candidates", entry.candidates);
  fields("trained_rows", entry.trained_rows);
}

template <typename F>
void Describe(F& fields, Described<F, StrangerScores>& strangers) {
  fields("enrolled", strangers.enrolled);
  fields("searches", strangers.searches);
  fields("chances", strangers.chances);
  fields("scores", strangers.scores);
  fields("tail_scale", strangers.tail_scale);
  fields("tail_shape", strangers.tail_shape);
}

namespace {

template <typename F>
void Describe(F& fields, Described<F, ManifestText>& text) {
  fields("format", text.format);
  fields("dimension", text.manifest.dimension);
  fields("bits", text.manifest.bits);
  fields("model_hash", text.manifest.model_hash);
  fields("mate_cosine", text.manifest.mate_cosine);
  fields("next", text.manifest.next);
  fields("segments", text.manifest.segments);
  fields("logs", text.manifest.logs);
  fields("strangers", text.manifest.strangers);
}

bool InRange(const Manifest& manifest) {
  const bool known_bits = manifest.bits == 1 || manifest.bits == 2 || manifest.bits == 4;
  if (manifest.dimension < 2 || manifest.dimension > kMaxDimension || !known_bits || manifest.logs.empty() ||
      manifest.logs.size() > kMostFiles || manifest.segments.size() > kMostFiles)
    return false;
  std::vector<uint64_t> numbers(manifest.logs);
  for (const auto& segment : manifest.segments) numbers.push_back(segment.number);
  std::ranges::sort(numbers);
  return std::ranges::adjacent_find(numbers) == numbers.end() && numbers.back() < manifest.next;
}

}  // namespace

uint64_t OwnerOf(const Manifest& manifest) {
  return Checksum(fmt::format("{} {}", manifest.dimension, manifest.model_hash));
}

std::string FormatManifest(const Manifest& manifest) {
  const std::string text = DumpJson(FieldsToJson(ManifestText{.manifest = manifest}));
  return fmt::format("{}\n{:016x}\n", text, Checksum(text));
}

Result<Manifest> ParseManifest(std::string_view text) {
  const size_t line = text.find('\n');
  const std::string_view body = text.substr(0, line);
  if (line == std::string_view::npos || text.substr(line + 1) != fmt::format("{:016x}\n", Checksum(body)))
    return Fail(ErrorCode::kCorrupt, "the checksum is wrong: restore the folder from a copy");
  ManifestText parsed = TRY(FieldsFromJson<ManifestText>(TRY(ParseJson(body))));
  if (!parsed.format.starts_with(kName)) return Fail(ErrorCode::kCorrupt, "not an index of identities");
  if (const auto version = std::string_view(parsed.format).substr(kName.size()); version != kVersion)
    return OtherVersion(version, kVersion);
  if (!InRange(parsed.manifest)) return Fail(ErrorCode::kCorrupt, "a value is out of range");
  return std::move(parsed.manifest);
}

std::unexpected<Error> OtherVersion(std::string_view found, std::string_view known) {
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("identities of version {}, and this program reads version {}: build the index again, "
                  "from a `weir identities export` of the program that made it",
                  CutToOneLine(EscapeForTerminal(found), 20), known));
}

std::string ManifestPath(const std::string& folder) { return folder + "/index.json"; }

}  // namespace weir::identity
