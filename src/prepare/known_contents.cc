#include "prepare/known_contents.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "dataset/line_reader.h"
#include "dataset/set_text.h"

namespace weir::prepare {

KnownContents::Key KnownContents::KeyOf(std::string_view hash) {
  CHECK(hash.size() == 32);
  Key key{};
  std::from_chars(hash.data(), hash.data() + 16, key.high, 16);
  std::from_chars(hash.data() + 16, hash.data() + 32, key.low, 16);
  return key;
}

void KnownContents::Add(std::string_view hash, Place place) {
  if (!hash.empty()) known_.try_emplace(KeyOf(hash), place);
}

Status KnownContents::AddManifest(const std::string& path, int64_t bytes, uint32_t set) {
  dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
  for (int64_t read = 0; read < bytes;) {
    const auto line = TRY(lines.Next());
    if (!line) break;
    const dataset::SetEntry entry = TRY_CONTEXT(dataset::ParseSetEntry(*line), path);
    Add(entry.source_hash, {set, read});
    read += std::ssize(*line) + 1;
  }
  return {};
}

std::optional<KnownContents::Place> KnownContents::Find(std::string_view hash) const {
  if (hash.empty()) return std::nullopt;
  const auto found = known_.find(KeyOf(hash));
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

dataset::RejectEntry DuplicateOf(const dataset::SetEntry& twin, std::string source, int64_t input,
                                 std::string_view hash) {
  return {.source = std::move(source),
          .input = input,
          .reason = std::string(ToString(image::RejectReason::kDuplicate)),
          .detail = fmt::format("the same bytes as {} (input {})", twin.source, twin.input),
          .twin = twin.source,
          .twin_input = twin.input,
          .source_hash = std::string(hash)};
}

}  // namespace weir::prepare
