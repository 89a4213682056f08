#include "feed/file_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"

namespace weir::feed {

static_assert(std::endian::native == std::endian::little, "an index is kept as it lies in memory");

namespace {

constexpr size_t kHeaderBytes = 128, kHashDigits = 32;
constexpr char kMagic[] = "WEIRFIX2";

struct Header {
  char magic[8];
  uint32_t header_bytes, entry_bytes;
  uint64_t samples, name_bytes, class_bytes;
  char set_hash[kHashDigits], content_hash[kHashDigits];
  char zeros[24];
};
static_assert(sizeof(Header) == kHeaderBytes);

std::span<const std::byte> BytesOfText(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

void FileIndex::Builder::Add(std::string_view name, int32_t label, uint64_t bytes, uint64_t hash) {
  entries_.push_back({names_.size(), static_cast<uint32_t>(name.size()), label, bytes, hash});
  names_ += name;
}

void FileIndex::Builder::Relabel(std::span<const int> labels) {
  for (Entry& entry : entries_) {
    if (entry.label >= 0) entry.label = labels[static_cast<size_t>(entry.label)];
  }
}

std::shared_ptr<const FileIndex> FileIndex::Builder::Finish(std::vector<std::string> classes,
                                                            std::string set_hash) && {
  std::shared_ptr<FileIndex> index(new FileIndex);
  index->own_entries_ = std::move(entries_);
  index->own_entries_.shrink_to_fit();
  index->own_names_ = std::move(names_);
  index->own_names_.shrink_to_fit();
  index->entries_ = index->own_entries_;
  index->names_ = index->own_names_;
  index->classes_ = std::move(classes);
  if (set_hash.empty()) {
    dataset::StreamHash hash;
    hash.Add(std::as_bytes(std::span(index->entries_)));
    hash.Add(BytesOfText(index->names_));
    for (const std::string& name : index->classes_) hash.Add(BytesOfText(name + "\n"));
    set_hash = hash.Digest();
  }
  index->set_hash_ = std::move(set_hash);
  return index;
}

std::string_view FileIndex::name(int64_t i) const {
  return names_.substr(entry(i).name_begin, entry(i).name_bytes);
}

FileIndex::~FileIndex() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

Status FileIndex::Save(const std::string& path) const {
  std::string classes;
  for (const std::string& name : classes_) classes += name + "\n";
  std::string body(reinterpret_cast<const char*>(entries_.data()), entries_.size_bytes());
  body += names_;
  body += classes;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.header_bytes = kHeaderBytes;
  header.entry_bytes = sizeof(Entry);
  header.samples = entries_.size();
  header.name_bytes = names_.size();
  header.class_bytes = classes.size();
  std::memcpy(header.set_hash, set_hash_.data(), std::min(set_hash_.size(), kHashDigits));
  std::memcpy(header.content_hash, dataset::HashOf(BytesOfText(body)).data(), kHashDigits);
  return WriteFileWhole(path, std::string(reinterpret_cast<const char*>(&header), sizeof header) + body);
}

Result<IndexParts> ParseIndex(std::span<const std::byte> bytes) {
  const auto corrupt = [](std::string why) { return Fail(ErrorCode::kCorrupt, std::move(why)); };
  if (bytes.size() < kHeaderBytes) return corrupt("shorter than the header of an index");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0 || header.header_bytes != kHeaderBytes ||
      header.entry_bytes != sizeof(FileIndex::Entry)) {
    return corrupt("not an index of a feed");
  }
  const uint64_t body = bytes.size() - kHeaderBytes;
  if (header.samples > body / sizeof(FileIndex::Entry) || header.name_bytes > body ||
      header.class_bytes > body ||
      header.samples * sizeof(FileIndex::Entry) + header.name_bytes + header.class_bytes != body) {
    return corrupt("cut, or longer than its header tells");
  }
  const std::span<const std::byte> content = bytes.subspan(kHeaderBytes);
  if (dataset::HashOf(content) != std::string_view(header.content_hash, kHashDigits))
    return corrupt("its contents are not those it was written with");
  IndexParts parts;
  parts.entries = {reinterpret_cast<const FileIndex::Entry*>(content.data()), header.samples};
  const char* names = reinterpret_cast<const char*>(content.data()) + parts.entries.size_bytes();
  parts.names = {names, header.name_bytes};
  std::string_view classes(names + header.name_bytes, header.class_bytes);
  while (!classes.empty()) {
    const size_t end = std::min(classes.find('\n'), classes.size());
    parts.classes.emplace_back(classes.substr(0, end));
    classes.remove_prefix(std::min(end + 1, classes.size()));
  }
  parts.set_hash.assign(header.set_hash, kHashDigits);
  for (const FileIndex::Entry& entry : parts.entries) {
    if (entry.name_begin > parts.names.size() || entry.name_bytes > parts.names.size() - entry.name_begin)
      return corrupt("a name lies outside");
    if (entry.label < -1 || entry.label >= static_cast<int64_t>(parts.classes.size()))
      if (!parts.classes.empty() || entry.label < -1) return corrupt("a label is none of the classes");
  }
  return parts;
}

Result<std::shared_ptr<const FileIndex>> FileIndex::Map(const std::string& path) {
  const dataset::OpenedFile file = TRY(dataset::OpenRegularFile(path));
  std::shared_ptr<FileIndex> index(new FileIndex);
  if (file.bytes > 0) {
    void* at = ::mmap(nullptr, static_cast<size_t>(file.bytes), PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
    if (at == MAP_FAILED) return FailErrno(path, errno);
    index->mapped_ = at;
    index->mapped_bytes_ = static_cast<size_t>(file.bytes);
  }
  const IndexParts parts =
      TRY_CONTEXT(ParseIndex({static_cast<const std::byte*>(index->mapped_), index->mapped_bytes_}),
                  fmt::format("{} (delete it, and it is made anew)", path));
  index->entries_ = parts.entries;
  index->names_ = parts.names;
  index->classes_ = parts.classes;
  index->set_hash_ = parts.set_hash;
  return index;
}

}  // namespace weir::feed
