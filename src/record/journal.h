// An append-only file of JSON lines, each whole or absent, after a kill or a full disk at any moment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace weir::record {

struct JournalContents {
  std::vector<Json> entries;  // one object a line
  uint64_t whole_bytes = 0;   // of the file, up to the end of the last whole line
  // After them: a last line without its newline, which a kill or a full disk leaves, or one that begins with
  // zero bytes, which a power cut leaves where the file had grown and the bytes had not come.
  uint64_t torn_bytes = 0;
};

// Parses a journal's text. kCorrupt names the line (from 1) that has its newline and is no JSON object,
// with the remedy: a write that was cut short does not leave one.
Result<JournalContents> ParseJournal(std::string_view text);

// Reads a journal without repairing it; somebody may be writing to it.
Result<JournalContents> ReadJournal(const std::string& path);

// The one writer of a journal. One thread at a time.
class Journal {
 public:
  struct Opened;
  // Makes the file, or goes on with the one there: a torn last line is cut off, and `contents` tells how much
  // that was. kIo where another journal object, here or in another process, has it open; kCorrupt as
  // ParseJournal.
  static Result<Opened> Open(const std::string& path, Durability durability = Durability::kSynced);

  // Writes one line; kSynced also waits for the disk. After an error the line is not in the file. Text in it
  // that is not UTF-8 must have gone through EscapeBytes. REQUIRES: an object.
  Status Append(const Json& entry);

 private:
  Journal(std::string path, UniqueFd fd, uint64_t size, Durability durability);

  std::string path_;
  UniqueFd fd_;  // holds the lock
  uint64_t size_;
  Durability durability_;
};

struct Journal::Opened {
  Journal journal;
  JournalContents contents;
};

}  // namespace weir::record
