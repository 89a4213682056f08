#include "base/json_blocks.h"

#include <optional>
#include <utility>

namespace weir {
namespace {

constexpr std::string_view kKey = "blocks", kReference = "block";
constexpr std::string_view kMark = ",\"blocks\":[";
constexpr size_t kLong = 1024;

void TakeOut(Json& json, std::vector<std::string>& blocks) {
  if (json.is_structured()) {
    for (Json& item : json) TakeOut(item, blocks);
    return;
  }
  if (!json.is_string()) return;
  auto& text = json.get_ref<std::string&>();
  if (text.size() < kLong || !HasBase64Only(text)) return;
  blocks.push_back(std::move(text));
  json = Json{{kReference, blocks.size() - 1}};
}

// Each once, so that a small file stays a small one.
Status PutBack(Json& json, std::vector<std::optional<std::string>>& blocks) {
  if (!json.is_structured()) return {};
  if (json.is_object() && json.size() == 1 && json.contains(kReference)) {
    const Json& index = json[kReference];
    if (!index.is_number_unsigned() || index.get<uint64_t>() >= blocks.size() ||
        !blocks[index.get<uint64_t>()]) {
      return Fail(ErrorCode::kCorrupt, "a block of numbers is missing");
    }
    json = *std::exchange(blocks[index.get<uint64_t>()], std::nullopt);
    return {};
  }
  for (Json& item : json) TRY_STATUS(PutBack(item, blocks));
  return {};
}

// Reads the text after kMark as DumpWithBlocks writes it. Returns nullopt if it is written in another way.
std::optional<std::vector<std::optional<std::string>>> ReadBlocks(std::string_view text) {
  std::vector<std::optional<std::string>> blocks;
  for (bool more = text.starts_with('"'); more;) {
    const size_t end = text.find('"', 1);
    // Whatever is no base64 is refused when it is decoded; a text with a backslash is another one.
    if (end == std::string_view::npos || text.substr(0, end).contains('\\')) return std::nullopt;
    blocks.emplace_back(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    more = text.starts_with(",\"");
    if (more) text.remove_prefix(1);
  }
  if (text != "]}" && text != "]}\n") return std::nullopt;
  return blocks;
}

}  // namespace

std::string DumpWithBlocks(Json json) {
  std::vector<std::string> blocks;
  TakeOut(json, blocks);
  std::string text = DumpJson(json);
  text.pop_back();  // the brace
  text += kMark;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0) text += ',';
    text += '"';
    text += blocks[i];
    text += '"';
  }
  return text + "]}";
}

Result<Json> ParseWithBlocks(std::string_view text) {
  std::optional<std::vector<std::optional<std::string>>> blocks;
  const size_t mark = text.find(kMark);
  if (mark != std::string_view::npos) blocks = ReadBlocks(text.substr(mark + kMark.size()));
  Json json;
  if (blocks) {
    json = TRY(ParseJson(std::string(text.substr(0, mark)) + "}"));
  } else {
    json = TRY(ParseJson(text));
    blocks.emplace();
    if (const auto found = json.find(kKey); json.is_object() && found != json.end() && found->is_array()) {
      for (Json& block : *found) {
        if (!block.is_string()) return Fail(ErrorCode::kCorrupt, "blocks holds what is no text");
        blocks->emplace_back(std::move(block.get_ref<std::string&>()));
      }
      json.erase(found);
    }
  }
  TRY_STATUS(PutBack(json, *blocks));
  return json;
}

}  // namespace weir
