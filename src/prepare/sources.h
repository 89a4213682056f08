// The inputs of `weir prepare`: files, folders, prepared sets, tar archives, and lists of names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "dataset/fetch.h"
#include "dataset/objects.h"
#include "dataset/source.h"
#include "prepare/feed.h"
#include "prepare/input_list.h"
#include "prepare/labels.h"

namespace weir::prepare {

struct SourceOptions {
  // Files, folders (recursive), prepared sets, tar archives and URLs of s3, http and https, as
  // dataset::ListInputs takes them. An archive behind a URL is copied to the cache folder first. A tar
  // archive gives its members that are named like pictures, with their labels (ReadArchive).
  std::vector<std::string> paths;
  // Files of names, one a line, "-" for standard input: a path, or a URL of s3, http or https; behind a tab
  // its label. A list whose first name ends with a zero byte (`find -print0`) has a zero byte behind each
  // name, any other byte is part of a name, and it has no labels. Read once and not looked into: what is not
  // there is a reject.
  std::vector<std::string> lists;
  std::string labels;  // "folders": the first folder of each name, if a file in it is named like a picture;
                       // else a CSV file of name,label; empty: as the sources have them
  uint64_t max_file_bytes = dataset::kMaxFileBytes;
  dataset::FetchOptions fetch;
};

// The listing; small: 1,000,000 names of 60 bytes are some 110 MB. Reading from it is thread-safe.
class Sources {
 public:
  // - kNotFound: a path is not there.
  // - kUnsupported: a raw set, whose pictures are prepared already, or a compressed archive.
  // - kInvalidArgument: sets that name their classes differently; labels that fit no input, several, or are
  //   none; a line of a list that is too long or holds a zero byte; standard input twice.
  // - kIo: the sources hold no picture.
  // - kCorrupt names a damaged set or archive.
  static Result<std::unique_ptr<Sources>> Open(SourceOptions options);

  // The sources must outlive it.
  Feed MakeFeed() const;

 private:
  Sources(SourceOptions options, std::unique_ptr<dataset::ObjectReader> reader)
      : options_(std::move(options)), reader_(std::move(reader)) {}

  std::unexpected<Error> NoPictures() const;
  Status AddListing(dataset::Listing listing);
  Status AddTar(const std::string& path);
  Status AddList(const std::string& path);
  Status AddListed(std::string_view name, const std::string& place, bool has_label);
  Status TakeClasses(const dataset::Listing& listing);
  Result<std::optional<int>> TicketOfSet(const dataset::PreparedSet& set, int label);
  Status FinishLabels();
  Status ReplaceLabels();
  Status TakeLabelsFrom(const std::string& file);
  void TakeFolders();
  std::optional<std::string_view> FolderOf(const ListedInput& input) const;
  void AddNotTaken();
  FedPicture Get(int64_t index) const;
  static std::string SourceOf(const ListedInput& input);
  std::string StateOf(int64_t index) const;
  image::Accepted<Bytes> Load(const ListedInput& input) const;
  image::Accepted<Bytes> LoadMember(const ListedInput& input) const;
  Status CheckUnchanged() const;

  struct Archive {
    std::string path, name;  // name: without its folder
    std::string state;       // of the file
    UniqueFd fd;
  };

  const SourceOptions options_;
  std::unique_ptr<dataset::ObjectReader> reader_;  // of URLs in lists
  InputList inputs_;
  std::vector<std::unique_ptr<const dataset::Listing>> listings_;  // of prepared sets and stores
  std::vector<Archive> archives_;
  std::vector<std::string> classes_;
  dataset::LabelRule label_rule_ = dataset::LabelRule::kNone;
  // For prepared sets, whose numbers stay as they are where all labels are theirs.
  struct SetLabels {
    const dataset::PreparedSet* first = nullptr;
    bool alike = true;        // one rule, which is known, and one list of classes
    std::vector<int> labels;  // by ticket
  };
  SetLabels set_labels_;
  LabelTexts texts_;  // inputs hold tickets until FinishLabels
  struct NotTaken {
    std::string name;
    image::Reject reject;
  };
  std::vector<NotTaken> not_taken_;  // entries of the sources; inputs from the end of the pictures on
  std::string folders_hash_;         // of what the folders held
  int64_t folders_inputs_ = 0;
  std::string labels_of_;  // what the labels were taken from, where they were given
  LabelFile::Unused unused_labels_;
};

}  // namespace weir::prepare
