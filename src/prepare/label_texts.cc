#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "prepare/labels.h"

namespace weir::prepare {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool IsDigits(std::string_view text) { return !text.empty() && text.find_first_not_of(kDigits) == text.npos; }

// "-1", "1.0", "+3", "1e5": numbers that are no classes. Without "inf" and the like, which may be names.
bool IsOtherNumber(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest.find_first_not_of("0123456789+-.eE") != rest.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error != std::errc::invalid_argument && end == rest.data() + rest.size();
}

bool IsNaN(std::string_view text) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::ranges::equal(text, std::string_view("nan"), same);
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  return text;
}

std::string_view WithoutMark(std::string_view first_line) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (first_line.starts_with(kMark)) first_line.remove_prefix(kMark.size());
  return first_line;
}

Status CheckLabel(std::string_view text) {
  if (std::ranges::any_of(text, IsControl)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is no label: it holds a control character, such as a line's end or a tab",
                            EscapeBytes(text)));
  }
  const bool no_class =
      IsDigits(text) ? text.front() != '0' && !dataset::CanonicalNumber(text) : IsOtherNumber(text);
  if (!no_class) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is no label: numbers of classes are the whole numbers 0 to 2147483647; put a "
                          "letter before the names of classes that are numbers",
                          text));
}

void LabelTexts::BeginSource(std::string source) { sources_.push_back({.name = std::move(source)}); }

void LabelTexts::Count(std::string_view text, const std::string& place) {
  if (sources_.empty()) return;
  Source& source = sources_.back();
  if (dataset::CanonicalNumber(text)) {
    source.numbers += 1;
  } else if (IsDigits(text)) {
    source.names += 1;
  } else if (++source.words == 1) {
    source.first_word = text;
    source.first_place = place;
  }
}

Result<std::optional<int>> LabelTexts::Take(std::string_view text, const std::string& place) {
  text = Trimmed(text);
  if (text.empty() || IsNaN(text)) return std::nullopt;
  TRY_STATUS(CheckLabel(text));
  Count(text, place);
  return TicketOf(text);
}

int LabelTexts::TakeName(std::string_view text) {
  if (!sources_.empty()) sources_.back().names += 1;
  return TicketOf(text);
}

int LabelTexts::TicketOf(std::string_view text) {
  const auto found = tickets_.find(text);
  if (found != tickets_.end()) return found->second;
  return tickets_.emplace(text, static_cast<int>(tickets_.size())).first->second;
}

Status LabelTexts::Check() const {
  const Source* numbers = nullptr;
  const Source* names = nullptr;
  for (const Source& source : sources_) {
    if (source.words > 0 && source.names == 0 && source.numbers > source.words) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: {}: the label \"{}\" is no number, and {} others are: correct it, or give "
                      "every label a name that begins with a letter",
                      source.name, source.first_place, EscapeBytes(source.first_word), source.numbers));
    }
    if (source.words + source.names > 0) names = &source;
    if (source.words + source.names == 0 && source.numbers > 0) numbers = &source;
  }
  if (numbers == nullptr || names == nullptr) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} numbers its classes, and {} names them: prepare them one by one, or give "
                          "--labels for both",
                          numbers->name, names->name));
}

Result<LabelTexts::Numbered> LabelTexts::Number() const {
  std::vector<std::string_view> texts;
  for (const auto& [text, ticket] : tickets_) texts.push_back(text);
  dataset::NumberedLabels by_text = TRY(dataset::NumberLabels(texts));
  Numbered numbered{by_text.rule, std::vector<int>(tickets_.size()), std::move(by_text.classes)};
  for (auto next = by_text.labels.begin(); const auto& [text, ticket] : tickets_)
    numbered.labels[static_cast<size_t>(ticket)] = *next++;
  return numbered;
}

}  // namespace weir::prepare
