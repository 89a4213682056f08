// Resolves DATA of the command line to a list of inputs in a fixed order, and the files passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "image/decode.h"
#include "image/reject.h"

namespace weir::object {
class ReadAhead;
}

namespace weir::dataset {

// One picture to be answered for. Small: many are held.
struct Input {
  std::string name;  // as found: the path (raw bytes); of a record its shard's path, '#' and its number
  std::optional<int> label;  // class, where the data set knows it
  int64_t record = -1;       // number in a set with shards; -1: a file of its own
  int set = -1;              // index of the prepared set it belongs to; -1: none
  int store = -1;            // index of the objects it belongs to; -1: a file or a record
  int64_t object = -1;       // its number among them
  size_t folder_bytes = 0;   // how much of `name` is the folder that was asked for, its slash included
  bool is_folder = false;    // by a picture's name; loading rejects it

  // The name without that folder: does not change when the data set is moved.
  std::string_view relative_name() const { return std::string_view(name).substr(folder_bytes); }
};

struct Skipped {
  std::string name;
  std::string why;  // "hidden", "not a picture by name or content", "folder already visited", "unreadable
                    // folder: ..."
  // What it counts as where all that is not taken counts; nullopt: its pictures are taken by another name.
  std::optional<image::RejectReason> reason;
  size_t folder_bytes = 0;  // as Input has it
};

// A prepared set: a folder with a set.json (see set.h).
class PreparedSet;

// A value; loading from it is thread-safe.
struct Listing {
  std::vector<Input> inputs;
  std::vector<Skipped> skipped;
  std::vector<std::shared_ptr<const PreparedSet>> sets;
  std::vector<std::shared_ptr<object::ReadAhead>> stores;  // objects of S3 or of a web server, by argument
};

using image::IsNamedLikeAPicture;

// Why a file of this name, which is not IsNamedLikeAPicture, is not taken: by its ending it is a picture of a
// format that is not read (AVIF, HEIC, JPEG XL, ...), an archive, or no picture.
struct NotTaken {
  image::RejectReason reason = image::RejectReason::kNotAPicture;
  std::string why;
};
NotTaken WhyNotTaken(std::string_view name, std::string_view otherwise);

// True for a relative name with a part that begins with a dot ("." and ".." apart).
bool IsHiddenName(std::string_view name);

// Which folders of a tree a walk has entered, by device and inode, so that circles of links end. Each folder
// of the first level begins anew: classes that are links to one folder all have its pictures.
class FolderVisits {
 public:
  // True where the folder is to be entered. `depth`: 0 for the tree's own.
  bool Enter(int depth, uint64_t device, uint64_t inode);

 private:
  std::set<std::pair<uint64_t, uint64_t>> visited_;
  std::pair<uint64_t, uint64_t> root_;
};

// Lists files, folders and prepared sets. A prepared set, asked for or met on the way, gives its pictures in
// its manifest's order, with their labels. Folders: recursive, entries in byte order of their names; hidden
// entries, and files that are neither named (IsNamedLikeAPicture) nor shaped (SniffFormat) like a picture,
// are skipped. What is named on the command line itself is never skipped. A linked folder is entered once in
// each folder of the first level (FolderVisits); every linked file is an input; links that lead nowhere,
// pipes, sockets and folders by a picture's name are inputs that loading will reject (a folder by a picture's
// name is also entered). s3://BUCKET/PREFIX: the objects below PREFIX/ in byte order of their keys, those
// passed over that are hidden or not named like a picture; prepared sets among them are copied to the cache
// folder first (object/mirror.h). http(s)://HOST/PATH: one picture. kNotFound when an argument is not there;
// kCorrupt names a damaged set; of a store the errors of object::RequestLoop.
Result<Listing> ListInputs(const std::vector<std::string>& arguments);

inline constexpr uint64_t kMaxFileBytes = 256 << 20;

// The bytes of one input: a file, or a record of a set (encoded, or of a raw set its pixels). Never blocks on
// a pipe or a device. Rejects: kNotAFile, kTooManyBytes (before memory is asked for), kUnreadable, kVanished
// (an object of a listing also if it was changed, or its store did not give it after all retries).
image::Accepted<Bytes> LoadInput(const Listing& listing, const Input& input,
                                 uint64_t max_bytes = kMaxFileBytes);

}  // namespace weir::dataset
