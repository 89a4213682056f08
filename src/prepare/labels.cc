#include "prepare/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "data/line_reader.h"

namespace weir::prepare {
namespace {

std::optional<int> NumberIn(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool IsHeader(const std::vector<std::string>& fields) {
  static constexpr std::array<std::string_view, 6> kNames = {"file",   "path",  "name",
                                                             "source", "image", "filename"};
  return std::ranges::find(kNames, Lower(fields.front())) != kNames.end();
}

// Which column the labels are in.
size_t LabelColumn(const std::vector<std::string>& header) {
  for (const std::string_view wanted : {"label", "class", "class_index"}) {
    for (size_t i = 1; i < header.size(); ++i) {
      if (Lower(header[i]) == wanted) return i;
    }
  }
  return 1;
}

}  // namespace

int LabelTexts::TicketOf(std::string_view text) {
  const auto found = tickets_.find(text);
  if (found != tickets_.end()) return found->second;
  return tickets_.emplace(text, static_cast<int>(tickets_.size())).first->second;
}

LabelTexts::Numbered LabelTexts::Number() const {
  Numbered numbered;
  numbered.labels.resize(tickets_.size());
  const bool numbers =
      std::ranges::all_of(tickets_, [](const auto& item) { return NumberIn(item.first).has_value(); });
  int next = 0;
  for (const auto& [text, ticket] : tickets_) {
    numbered.labels[static_cast<size_t>(ticket)] = numbers ? *NumberIn(text) : next++;
    if (!numbers) numbered.classes.push_back(EscapeBytes(text));
  }
  return numbered;
}

Status CheckLabel(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  if (!is_number || NumberIn(text)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is no label: numbers of classes are 0 to 2147483647; put a letter before the "
                          "names of classes that are numbers",
                          text));
}

std::optional<std::vector<std::string>> SplitCsv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        i += 1;
      } else {
        quoted = false;
        if (i + 1 < line.size() && line[i + 1] != ',') return std::nullopt;
      }
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '"') {
      if (!fields.back().empty()) return std::nullopt;
      quoted = true;
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

std::string_view WithoutMark(std::string_view first_line) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (first_line.starts_with(kMark)) first_line.remove_prefix(kMark.size());
  return first_line;
}

Result<std::unique_ptr<const LabelFile>> LabelFile::Read(const std::string& path, LabelTexts& texts) {
  auto file = std::make_unique<LabelFile>();
  data::LineReader lines = TRY(data::LineReader::Open(path));
  size_t column = 1;
  bool first = true;
  while (const auto next = TRY(lines.Next())) {
    std::string_view line = lines.line() == 1 ? WithoutMark(*next) : *next;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    auto fields = SplitCsv(line);
    if (!fields || (fields->size() <= column && !first) || fields->size() < 2) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: line {}: wants a name, a comma and a label", path, lines.line()));
    }
    if (std::exchange(first, false) && IsHeader(*fields)) {
      column = LabelColumn(*fields);
      continue;
    }
    const std::string& label = (*fields)[column];
    const auto place = [&] { return fmt::format("{}: line {}", path, lines.line()); };
    if (const Status good = CheckLabel(label); !good) return Context(place(), good.error());
    const Entry entry{.ticket = texts.TicketOf(label), .line = lines.line()};
    const auto [known, is_new] = file->entries_.try_emplace(std::move(fields->front()), entry);
    if (!is_new) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} has a label already, of line {}: leave one of them out", place(),
                              EscapeBytes(known->first), known->second.line));
    }
  }
  return file;
}

std::optional<int> LabelFile::TicketOf(std::string_view name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) found = entries_.find(name.substr(name.rfind('/') + 1));
  if (found == entries_.end()) return std::nullopt;
  return found->second.ticket;
}

}  // namespace weir::prepare
