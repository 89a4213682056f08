#include "prepare/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"
#include "dataset/source.h"

namespace weir::prepare {
namespace {

// Tells what columns are called, the likeliest first.
constexpr std::string_view kNameWords[] = {"filename", "file_name",  "file",  "filepath",   "file_path",
                                           "path",     "image_path", "image", "image_name", "img_path",
                                           "img",      "image_file", "name",  "source",     "picture",
                                           "image_id", "imageid",    "id",    "key"};
constexpr std::string_view kLabelWords[] = {"label",    "class",      "class_index", "labels",
                                            "class_id", "class_name", "category",    "target"};

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// The column that has the first of these words.
std::optional<size_t> FindColumn(const std::vector<std::string>& header,
                                 std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (Lower(header[i]) == word) return i;
    }
  }
  return std::nullopt;
}

std::string_view WithoutDots(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

// True where `name` is a picture's name, or the end of one behind a slash.
bool IsPicture(std::string_view name, const NamedPictures& pictures) {
  name = WithoutDots(name);
  if (name.empty()) return false;
  for (int64_t i = 0; i < pictures.count; ++i) {
    const std::string_view whole = WithoutDots(pictures.name(i));
    if (!whole.ends_with(name)) continue;
    if (whole.size() == name.size() || whole[whole.size() - name.size() - 1] == '/') return true;
  }
  return false;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

struct Columns {
  size_t name = 0, label = 1;
};

}  // namespace

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
        was_quoted_ = true;
      }
    } else if (c == ',') {
      fields_.emplace_back();
      was_quoted_ = false;
    } else if (c == '"') {
      if (was_quoted_ || !Trimmed(fields_.back()).empty()) return State::kWrong;
      quoted_ = true;
    } else if (was_quoted_ && static_cast<unsigned char>(c) > ' ') {
      return State::kWrong;
    } else {
      fields_.back() += c;
    }
  }
  return quoted_ ? State::kOpen : State::kWhole;
}

std::vector<std::string> CsvRecord::TakeFields() {
  for (std::string& field : fields_) field = Trimmed(field);
  return std::move(fields_);
}

// Reads one file, and decides what its first line is.
class LabelFile::Reader {
 public:
  Reader(LabelFile& file, dataset::LineReader lines, const NamedPictures& pictures, LabelTexts& texts)
      : file_(file), lines_(std::move(lines)), pictures_(pictures), texts_(texts) {}

  Status Read() {
    texts_.BeginSource(file_.path_);
    while (const auto fields = TRY(NextRecord())) {
      if (std::ranges::all_of(*fields, &std::string::empty)) continue;
      if (first_ && fields->front().starts_with("sep=")) continue;  // how spreadsheets tell of the comma
      const bool is_first = std::exchange(first_, false);
      if (is_first && TRY(TakeFirst(*fields))) continue;
      TRY_STATUS(Add(*fields, line_));
    }
    if (kept_) TRY_STATUS(DecideKept());
    TRY_STATUS(texts_.Check());
    file_.hash_ = hash_.Digest();
    return {};
  }

 private:
  std::unexpected<Error> Refuse(int64_t line, std::string_view what) const {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: line {}: {}", file_.path_, line, what));
  }

  std::unexpected<Error> RefuseColumns(int64_t line) const {
    return Refuse(line, "no column is called \"label\", and several could hold the labels: call one so");
  }

  Result<std::optional<std::string_view>> NextLine() {
    const auto line = TRY(lines_.Next());
    if (!line) return std::nullopt;
    hash_.Add(std::as_bytes(std::span(*line)));
    hash_.Add(std::as_bytes(std::span("\n", 1)));
    return line;
  }

  Result<std::optional<std::vector<std::string>>> NextRecord() {
    const auto next = TRY(NextLine());
    if (!next) return std::nullopt;
    line_ = lines_.line();
    CsvRecord record;
    CsvRecord::State state = record.Add(line_ == 1 ? WithoutMark(*next) : *next);
    while (state == CsvRecord::State::kOpen && record.bytes() <= dataset::LineReader::kMaxLine) {
      const auto more = TRY(NextLine());
      if (!more) break;
      state = record.Add(*more);
    }
    if (state == CsvRecord::State::kOpen)
      return Refuse(line_, "a quote that opens here is not closed: close it, or double it");
    if (state == CsvRecord::State::kWrong)
      return Refuse(line_, "a quote stands within a field: put the whole field in quotes, and double it");
    return record.TakeFields();
  }

  // Returns whether the first line is taken: as a header, or kept until the others are known.
  Result<bool> TakeFirst(std::vector<std::string> fields) {
    while (fields.back().empty()) fields.pop_back();  // of commas at the end
    const auto is_name = [&](const std::string& field) {
      return dataset::IsNamedLikeAPicture(field) || IsPicture(field, pictures_);
    };
    if (std::ranges::any_of(fields, is_name)) return false;
    const auto name = FindColumn(fields, kNameWords), label = FindColumn(fields, kLabelWords);
    if (!name && !label) {
      kept_.emplace(std::move(fields));
      kept_line_ = line_;
      return true;
    }
    if (!label && fields.size() > 2) return RefuseColumns(line_);
    columns_.name = name.value_or(label == size_t{0} ? 1 : 0);
    columns_.label = label.value_or(columns_.name == 0 ? 1 : 0);
    return true;
  }

  // The first line of a file without known words: a header unless its label is like the others.
  Status DecideKept() {
    const std::vector<std::string>& fields = *kept_;
    const bool is_row = fields.size() > 1 && (all_numbers_ ? IsNumber(fields[1]) : kept_again_);
    if (is_row) return Add(fields, kept_line_);
    if (fields.size() > 2) return RefuseColumns(kept_line_);
    return {};
  }

  Status Add(const std::vector<std::string>& fields, int64_t line) {
    if (fields.size() <= std::max(columns_.name, columns_.label) || fields[columns_.name].empty()) {
      const bool other = fields.size() == 1 && fields.front().find_first_of(";\t") != std::string::npos;
      return Refuse(line, other
                              ? "wants a name, a comma and a label: its columns are parted by something else"
                              : "wants a name, a comma and a label");
    }
    const std::string_view name = WithoutDots(fields[columns_.name]), label = fields[columns_.label];
    if (FindColumn({std::string(name)}, kNameWords) && FindColumn({std::string(label)}, kLabelWords))
      return Refuse(line, "is a header: only the first line may be one");
    all_numbers_ = all_numbers_ && (label.empty() || IsNumber(label));
    kept_again_ = kept_again_ || (kept_ && kept_->size() > 1 && label == (*kept_)[1]);
    const std::string place = fmt::format("line {}", line);
    const Entry entry{.ticket = TRY_CONTEXT(texts_.Take(label, place), file_.path_ + ": " + place),
                      .line = line};
    const auto [known, is_new] = file_.entries_.try_emplace(std::string(name), entry);
    if (is_new || known->second.ticket == entry.ticket) return {};
    if (IsPicture(label, pictures_)) {
      return Refuse(line,
                    "the labels stand before the names: put the name of the picture first, or add a "
                    "header with the words \"filename\" and \"label\"");
    }
    return Refuse(line, fmt::format("{} has another label already, of line {}: leave one of them out",
                                    EscapeBytes(known->first), known->second.line));
  }

  LabelFile& file_;
  dataset::LineReader lines_;
  const NamedPictures& pictures_;
  LabelTexts& texts_;
  dataset::StreamHash hash_;
  Columns columns_;
  int64_t line_ = 0;  // at which the record begins
  bool first_ = true;
  std::optional<std::vector<std::string>> kept_;  // the first line, until the others are known
  int64_t kept_line_ = 0;
  bool all_numbers_ = true;  // the labels so far
  bool kept_again_ = false;  // another line has the kept one's label
};

Result<std::unique_ptr<LabelFile>> LabelFile::Read(const std::string& path, const NamedPictures& pictures,
                                                   LabelTexts& texts) {
  auto file = std::make_unique<LabelFile>();
  file->path_ = path;
  TRY_STATUS(Reader(*file, TRY(dataset::LineReader::Open(path)), pictures, texts).Read());
  return file;
}

LabelFile::Entries::value_type* LabelFile::Find(std::string_view name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    const std::string escaped = EscapeBytes(name);
    if (escaped == name) return nullptr;
    found = entries_.find(escaped);
  }
  return found == entries_.end() ? nullptr : &*found;
}

Status LabelFile::Use(Entries::value_type& item, int64_t picture, const NamedPictures& pictures) const {
  Entry& entry = item.second;
  if (entry.picture < 0) {
    entry.picture = picture;
  } else if (!pictures.are_one(entry.picture, picture)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: line {}: {} may mean {} or {}: give names with their folders, or label one "
                            "source at a time",
                            path_, entry.line, EscapeBytes(item.first),
                            EscapeBytes(pictures.name(entry.picture)), EscapeBytes(pictures.name(picture))));
  }
  return {};
}

Result<std::vector<std::optional<int>>> LabelFile::Match(const NamedPictures& pictures) {
  std::vector<std::optional<int>> tickets(static_cast<size_t>(pictures.count));
  std::vector<bool> matched(tickets.size());
  for (int64_t i = 0; i < pictures.count; ++i) {
    Entries::value_type* item = Find(WithoutDots(pictures.name(i)));
    if (item == nullptr) continue;
    TRY_STATUS(Use(*item, i, pictures));
    item->second.by_whole = true;
    tickets[static_cast<size_t>(i)] = item->second.ticket;
    matched[static_cast<size_t>(i)] = true;
  }
  for (int64_t i = 0; i < pictures.count; ++i) {
    if (matched[static_cast<size_t>(i)]) continue;
    const std::string_view name = pictures.name(i);
    Entries::value_type* item = nullptr;
    for (size_t slash = name.find('/'); slash != name.npos && item == nullptr;
         slash = name.find('/', slash + 1))
      item = Find(name.substr(slash + 1));
    // A line with another picture's whole name is that one's.
    if (item == nullptr || item->second.by_whole) continue;
    TRY_STATUS(Use(*item, i, pictures));
    tickets[static_cast<size_t>(i)] = item->second.ticket;
  }
  return tickets;
}

LabelFile::Unused LabelFile::FindUnused(size_t most) const {
  Unused unused;
  std::vector<std::pair<int64_t, const std::string*>> names;
  for (const auto& [name, entry] : entries_) {
    if (entry.picture < 0) names.emplace_back(entry.line, &name);
  }
  unused.count = std::ssize(names);
  const auto end = names.begin() + std::min(std::ssize(names), static_cast<ptrdiff_t>(most));
  std::ranges::partial_sort(names, end);
  for (auto name = names.begin(); name != end; ++name) unused.examples.push_back(*name->second);
  return unused;
}

}  // namespace weir::prepare
