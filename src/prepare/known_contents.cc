#include "prepare/known_contents.h"

#include <fmt/format.h>

#include <charconv>

#include "data/line_reader.h"
#include "data/set_text.h"

namespace weir::prepare {

KnownContents::Key KnownContents::KeyOf(std::string_view hash) {
  CHECK(hash.size() == 32);
  Key key{};
  std::from_chars(hash.data(), hash.data() + 16, key.high, 16);
  std::from_chars(hash.data() + 16, hash.data() + 32, key.low, 16);
  return key;
}

bool KnownContents::Add(std::string_view hash) { return known_.insert(KeyOf(hash)).second; }

Status KnownContents::AddManifest(const std::string& path, int64_t bytes) {
  data::LineReader lines = TRY(data::LineReader::Open(path));
  for (int64_t read = 0; read < bytes;) {
    const auto line = TRY(lines.Next());
    if (!line) break;
    read += std::ssize(*line) + 1;
    const data::SetEntry entry = TRY_CONTEXT(data::ParseSetEntry(*line), path);
    if (!entry.source_hash.empty()) Add(entry.source_hash);
  }
  return {};
}

std::string KnownContents::Detail(std::string_view hash) {
  return fmt::format("the same bytes as a picture before it, XXH3-128 {}", hash);
}

}  // namespace weir::prepare
