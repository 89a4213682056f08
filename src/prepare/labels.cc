#include "prepare/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"

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

void AddLine(dataset::StreamHash& hash, std::string_view line) {
  hash.Add(std::as_bytes(std::span(line)));
  hash.Add(std::as_bytes(std::span("\n", 1)));
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

CsvRecord::State CsvRecord::Add(std::string_view line) {
  bytes_ += line.size() + 1;
  if (quoted_) {
    fields_.back() += '\n';
  } else {
    fields_.assign(1, "");
  }
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted_) {
      if (c != '"') {
        fields_.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields_.back() += '"';
        i += 1;
      } else {
        quoted_ = false;
        const std::string_view rest = line.substr(i + 1);
        if (!rest.empty() && rest.front() != ',' && rest != "\r") return State::kWrong;
      }
    } else if (c == ',') {
      fields_.emplace_back();
    } else if (c == '"') {
      if (!fields_.back().empty()) return State::kWrong;
      quoted_ = true;
    } else if (c != '\r' || i + 1 < line.size()) {
      fields_.back() += c;
    }
  }
  return quoted_ ? State::kOpen : State::kWhole;
}

std::string_view WithoutMark(std::string_view first_line) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (first_line.starts_with(kMark)) first_line.remove_prefix(kMark.size());
  return first_line;
}

Result<std::unique_ptr<LabelFile>> LabelFile::Read(const std::string& path, LabelTexts& texts) {
  auto file = std::make_unique<LabelFile>();
  dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
  dataset::StreamHash hash;
  size_t column = 1;
  bool first = true;
  while (const auto next = TRY(lines.Next())) {
    AddLine(hash, *next);
    const std::string_view line = lines.line() == 1 ? WithoutMark(*next) : *next;
    if (line.empty() || line == "\r" || line.starts_with('#')) continue;
    const int64_t begin = lines.line();
    const auto place = [&] { return fmt::format("{}: line {}", path, begin); };
    CsvRecord record;
    CsvRecord::State state = record.Add(line);
    while (state == CsvRecord::State::kOpen && record.bytes() <= dataset::LineReader::kMaxLine) {
      const auto more = TRY(lines.Next());
      if (!more) break;
      AddLine(hash, *more);
      state = record.Add(*more);
    }
    if (state == CsvRecord::State::kOpen) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: a quote that opens here is not closed: close it, or double it", place()));
    }
    std::vector<std::string>& fields = record.fields();
    if (state == CsvRecord::State::kWrong || (fields.size() <= column && !first) || fields.size() < 2) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: wants a name, a comma and a label", place()));
    }
    if (std::exchange(first, false) && IsHeader(fields)) {
      column = LabelColumn(fields);
      continue;
    }
    const std::string& label = fields[column];
    if (const Status good = CheckLabel(label); !good) return Context(place(), good.error());
    const Entry entry{.ticket = texts.TicketOf(label), .line = begin};
    const auto [known, is_new] = file->entries_.try_emplace(std::move(fields.front()), entry);
    if (!is_new) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} has a label already, of line {}: leave one of them out", place(),
                              EscapeBytes(known->first), known->second.line));
    }
  }
  file->hash_ = hash.Digest();
  return file;
}

LabelFile::Entry* LabelFile::Find(std::string_view name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    const std::string escaped = EscapeBytes(name);
    if (escaped == name) return nullptr;
    found = entries_.find(escaped);
  }
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<int> LabelFile::TicketOf(std::string_view name) {
  Entry* entry = Find(name);
  if (entry == nullptr) entry = Find(name.substr(name.rfind('/') + 1));
  if (entry == nullptr) return std::nullopt;
  entry->used = true;
  return entry->ticket;
}

LabelFile::Unused LabelFile::FindUnused(size_t most) const {
  Unused unused;
  std::vector<std::pair<int64_t, const std::string*>> names;
  for (const auto& [name, entry] : entries_) {
    if (!entry.used) names.emplace_back(entry.line, &name);
  }
  unused.count = std::ssize(names);
  const auto end = names.begin() + std::min(std::ssize(names), static_cast<ptrdiff_t>(most));
  std::ranges::partial_sort(names, end);
  for (auto name = names.begin(); name != end; ++name) unused.examples.push_back(*name->second);
  return unused;
}

}  // namespace weir::prepare
