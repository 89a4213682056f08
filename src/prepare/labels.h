// Labels as people write them: numbers, or names of classes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace weir::prepare {

// Gathers the texts of labels and then gives each its number. One thread at a time.
class LabelTexts {
 public:
  // A ticket for `text`; the same for the same text.
  int TicketOf(std::string_view text);

  // The label of each ticket, and the classes' names. Where every text is a whole number of 0 to 2^31 - 1,
  // these are the labels, and the classes have no names; else the classes are the texts in byte order.
  struct Numbered {
    std::vector<int> labels;  // by ticket
    std::vector<std::string> classes;
  };
  Numbered Number() const;

 private:
  std::map<std::string, int, std::less<>> tickets_;
};

// kInvalidArgument, with the remedy, for a whole number that is no label, one below 0 or above 2^31 - 1: as a
// text it would make classes of names of all labels.
Status CheckLabel(std::string_view text);

// A text file's first line without the byte order mark (UTF-8) that spreadsheets and editors begin it with.
std::string_view WithoutMark(std::string_view first_line);

// One record of CSV (RFC 4180), line by line: a field in quotes may hold line breaks. Fields are raw bytes,
// as names of files are; base/csv.h reads tables of UTF-8 text with a header. One thread at a time.
class CsvRecord {
 public:
  enum class State {
    kWhole,
    kOpen,  // the next line belongs to it
    kWrong  // a quote stands where none belongs
  };
  // Adds a line without its newline. A carriage return at its end is part of the line's end. REQUIRES: the
  // first line, or kOpen.
  State Add(std::string_view line);

  std::vector<std::string>& fields() { return fields_; }
  size_t bytes() const { return bytes_; }  // of the lines so far

 private:
  std::vector<std::string> fields_;
  bool quoted_ = false;
  size_t bytes_ = 0;
};

// Which label each name has, from a CSV file of two columns, name and label; more columns are passed over. A
// field in quotes may hold line breaks. A first line whose first field is "file", "path", "name", "source",
// "image" or "filename" (any case) is a header, and its "label", "class" or "class_index" column, where it
// has one (in this order), is the one that is read. Lines that begin with "#" and empty ones are passed over.
// kNotFound, kIo; kInvalidArgument names the line: of what is no name and label, a number that is no label
// (CheckLabel), or a name that came before.
class LabelFile {
 public:
  static Result<std::unique_ptr<LabelFile>> Read(const std::string& path, LabelTexts& texts);

  // The ticket of `name` (raw bytes), or else of its last part (behind the last slash); of either as it is,
  // or as a manifest has it (EscapeBytes). Notes that the entry was used.
  std::optional<int> TicketOf(std::string_view name);

  // How many names were not asked for, and `most` of them in the order of the file.
  struct Unused {
    int64_t count = 0;
    std::vector<std::string> examples;
  };
  Unused FindUnused(size_t most) const;

  const std::string& hash() const { return hash_; }  // XXH3-128 of its lines

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Entry {
    int ticket = 0;
    int64_t line = 0;
    bool used = false;
  };
  Entry* Find(std::string_view name);

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  std::string hash_;
};

}  // namespace weir::prepare
