// Tar archives (POSIX ustar and pax, GNU): writing their headers, and finding what lies where in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::dataset {

inline constexpr int64_t kTarBlock = 512;

// The header of a regular file: mode 0644, of nobody, of the beginning of time, so that it depends on name
// and size alone. REQUIRES: a name of 1 to 100 bytes without a zero; 0 <= size < 8 GiB.
std::string FormatTarHeader(std::string_view name, int64_t size);
// Zeros from the end of a member of `size` bytes to the next block.
std::string TarPadding(int64_t size);

// One block of 512 bytes as it stands in an archive.
struct TarHeader {
  bool is_end = false;  // an empty block: no more members
  char type = '0';      // '0' a file, '5' a folder, 'x' 'g' 'L' 'K' words about others, ...
  std::string name;     // raw bytes
  std::string link;     // raw bytes: where a link leads
  int64_t size = 0;     // of what follows
};
// kCorrupt for a wrong checksum, and for sizes that are no numbers or over 2^60. REQUIRES: 512 bytes.
Result<TarHeader> ParseTarHeader(std::span<const std::byte> block);

enum class TarKind {
  kFile,
  kHardLink,  // another name of the file whose name `link` is
  kSoftLink,  // `link` is a path from the folder that the link lies in
  kOther,     // a device, a pipe, or of a type that is not known
  kRest       // no member: what stands behind the archive's end, and is no archive either
};
struct TarMember {
  std::string name;    // raw bytes
  int64_t offset = 0;  // of its bytes in the archive
  int64_t size = 0;
  TarKind kind = TarKind::kFile;
  std::string link;  // raw bytes; of links
};
// Calls `found` with each member of the archive that is no folder, in its order, without reading their bytes.
// An archive that ends without its empty blocks is as good as one with them; one that stands behind another
// in the file (`cat a.tar b.tar`) is part of it. kCorrupt names the offset where it is cut or wrong;
// kUnsupported for compressed archives (with the remedy), sparse members, and names over 64 KiB; kIo; an
// error of `found` ends it.
Status ScanTar(const std::string& path, const std::function<Status(const TarMember&)>& found);

// The same over memory, for archives that are there whole. `read(offset, size)` gives the bytes, fewer at the
// archive's end.
using TarRead = std::function<Result<std::string>(int64_t offset, int64_t size)>;
Status ScanTar(const TarRead& read, int64_t archive_bytes,
               const std::function<Status(const TarMember&)>& found);

// True when the first 512 bytes are a tar header.
bool IsTar(const std::string& path);

}  // namespace weir::dataset
