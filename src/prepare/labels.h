// Labels as people write them: numbers, or names of classes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "dataset/labels.h"

namespace weir::prepare {

// Takes blanks, line ends and other control characters from both ends of a text.
std::string_view Trimmed(std::string_view text);

// A text file's first line without the byte order mark (UTF-8) that spreadsheets and editors begin it with.
std::string_view WithoutMark(std::string_view first_line);

// kInvalidArgument, with the remedy, for a text that is no label: a number other than a whole one of 0 to
// 2^31 - 1 (as a text it would make names of all classes), or one with a control character.
Status CheckLabel(std::string_view text);

// Gathers the texts of labels, source by source, and then gives each its number. One thread at a time.
class LabelTexts {
 public:
  // The texts that come next are those of `source` (a labels file, an archive, ...).
  void BeginSource(std::string source);

  // A ticket for the text of a label, trimmed; the same for the same text. nullopt for an empty text and for
  // "NaN" (any case): no label. `place` is for messages ("line 7"). Errors as CheckLabel.
  Result<std::optional<int>> Take(std::string_view text, const std::string& place);
  // The same for the name of a class: any text, as it is.
  int TakeName(std::string_view text);

  // Refuses what would number classes otherwise than whoever wrote the labels meant: a source whose labels
  // are whole numbers but for a few words, which would make names of all of them, and sources of which one
  // numbers its classes and another one names them. kInvalidArgument names the places.
  Status Check() const;

  size_t size() const { return tickets_.size(); }  // of the tickets, which count from 0

  // The class of each ticket, and the classes' names (dataset::NumberLabels).
  struct Numbered {
    dataset::LabelRule rule = dataset::LabelRule::kNone;
    std::vector<int> labels;  // by ticket
    std::vector<std::string> classes;
  };
  Result<Numbered> Number() const;

 private:
  struct Source {
    std::string name;
    int64_t numbers = 0, names = 0, words = 0;  // labels: "7"; "07" and names of classes; others
    std::string first_word, first_place;        // of the words
  };
  void Count(std::string_view text, const std::string& place);
  int TicketOf(std::string_view text);

  std::map<std::string, int, std::less<>> tickets_;
  std::vector<Source> sources_;
};

// One record of CSV (RFC 4180), line by line: a field in quotes may hold line breaks. Fields are raw bytes,
// trimmed; base/csv.h reads tables of UTF-8 text with a header. One thread at a time.
class CsvRecord {
 public:
  enum class State {
    kWhole,
    kOpen,  // the next line belongs to it
    kWrong  // a quote stands where none belongs
  };
  // Adds a line without its newline. REQUIRES: the first line, or kOpen.
  State Add(std::string_view line);

  // Trimmed, without the empty fields of commas at the end. REQUIRES: kWhole.
  std::vector<std::string> TakeFields();
  size_t bytes() const { return bytes_; }  // of the lines so far

 private:
  std::vector<std::string> fields_;
  bool quoted_ = false;
  bool was_quoted_ = false;  // the field; nothing may follow its quotes
  size_t bytes_ = 0;
};

// The pictures that a labels file may name.
struct NamedPictures {
  int64_t count = 0;
  std::function<std::string_view(int64_t)> name;  // raw bytes, below its source
  std::function<bool(int64_t, int64_t)> are_one;  // two that have one name are one picture
};

// Which label each name has, from a CSV file of a name and a label in each line; more columns are passed
// over. The columns are the first two, or those that a header tells. A header is a first line that has a word
// for a column ("filename", "label", ...), or whose first field names no picture while its second is not like
// the labels below it.
class LabelFile {
 public:
  // kNotFound, kIo; kInvalidArgument names the line: of what is no name and label, a text that is no label
  // (LabelTexts::Take), or a name that has another label already; or says that the file's first column holds
  // the labels.
  static Result<std::unique_ptr<LabelFile>> Read(const std::string& path, const NamedPictures& pictures,
                                                 LabelTexts& texts);

  // The ticket of each picture's label: of the line that has its name, or else the longest end of it that
  // begins behind a slash; of either as it is, or as a manifest has it (EscapeBytes). kInvalidArgument for a
  // line that several pictures could be meant by.
  Result<std::vector<std::optional<int>>> Match(const NamedPictures& pictures);

  // How many names belong to no picture, and `most` of them in the order of the file. After Match.
  struct Unused {
    int64_t count = 0;
    std::vector<std::string> examples;
  };
  Unused FindUnused(size_t most) const;

  int64_t size() const { return std::ssize(entries_); }  // names
  const std::string& hash() const { return hash_; }      // XXH3-128 of its lines

 private:
  class Reader;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Entry {
    std::optional<int> ticket;
    int64_t line = 0;
    int64_t picture = -1;   // the first that it labels
    bool by_whole = false;  // by the picture's whole name
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;
  Entries::value_type* Find(std::string_view name);
  Status Use(Entries::value_type& item, int64_t picture, const NamedPictures& pictures) const;

  std::string path_;
  Entries entries_;
  std::string hash_;
};

}  // namespace weir::prepare
