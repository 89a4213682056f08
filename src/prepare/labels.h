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

// The fields of one line of CSV (RFC 4180, without line breaks inside of quotes); nullopt where its quotes
// are wrong.
std::optional<std::vector<std::string>> SplitCsv(std::string_view line);

// Which label each name has, from a CSV file of two columns, name and label; more columns are passed over. A
// first line whose first field is "file", "path", "name", "source", "image" or "filename" (any case) is a
// header, and its "label", "class" or "class_index" column, where it has one (in this order), is the one that
// is read. Lines that begin with "#" and empty ones are passed over. kNotFound, kIo; kInvalidArgument names
// the line: of what is no name and label, a number that is no label (CheckLabel), or a name that came before.
class LabelFile {
 public:
  static Result<std::unique_ptr<const LabelFile>> Read(const std::string& path, LabelTexts& texts);

  // The ticket of `name`, or else of its last part (behind the last slash).
  std::optional<int> TicketOf(std::string_view name) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Entry {
    int ticket = 0;
    int64_t line = 0;
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
};

}  // namespace weir::prepare
