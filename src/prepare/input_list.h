// The inputs of a large work, in little memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::prepare {

enum class InputKind : uint8_t {
  kFile,        // found in a folder, or named on the command line
  kListedFile,  // named by a list; nobody has looked for it
  kUrl,
  kSetInput,
  kObject,  // of a store that was listed
  kTarMember,
  kNotTaken  // an entry of a source that is no picture: always a reject
};

struct ListedInput {
  InputKind kind = InputKind::kFile;
  bool is_folder = false;     // by a picture's name; loading rejects it
  std::string_view name;      // how to reach it: a path, a URL, a member's name
  uint32_t folder_bytes = 0;  // how much of the name is the folder that was asked for, its slash included
  std::optional<int> label;
  int32_t container = -1;  // which listing's input, or which archive, it is in
  int64_t offset = 0;      // in the archive; of a listing's input its number
  int64_t bytes = 0;       // in the archive

  std::string_view relative_name() const { return name.substr(folder_bytes); }
};

// Some 40 bytes an input, and its name. Filled on one thread; then read by any.
class InputList {
 public:
  static constexpr size_t kMaxName = 128 << 10;  // bytes: what a command line may hold in one word

  // REQUIRES: a name of kMaxName bytes at most.
  void Add(const ListedInput& input);
  void SetLabel(int64_t index, std::optional<int> label);

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  ListedInput operator[](int64_t index) const;  // its name lies in the list

 private:
  static constexpr size_t kChunk = 1 << 20;  // bytes of names

  // Names lie in chunks, so that growing moves nothing and needs no memory twice.
  struct Item {
    const char* name;
    uint32_t name_bytes, folder_bytes;
    int32_t label, container;  // -1: none
    int64_t offset, bytes;
    InputKind kind;
    bool is_folder;
  };
  std::deque<Item> items_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t used_ = kChunk;  // of the last chunk
};

}  // namespace weir::prepare
