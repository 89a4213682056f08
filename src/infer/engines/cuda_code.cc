#include "infer/engines/cuda_code.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

namespace weir::infer {
namespace {

using File = std::span<const std::byte>;

std::unexpected<Error> Corrupt() {
  return Fail(ErrorCode::kCorrupt, "is no whole library (ELF for x86-64): install it again");
}

// A copy, since nothing in a file need be aligned.
template <typename T>
std::optional<T> At(File file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

std::optional<File> Part(File file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || file.size() - offset < size) return std::nullopt;
  return file.subspan(offset, size);
}

Result<File> SectionOf(File file, std::string_view name) {
  const auto header = At<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_X86_64)
    return Corrupt();
  const auto section = [&](uint64_t index) {
    return At<Elf64_Shdr>(file, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  if (!names) return Corrupt();
  const auto texts = Part(file, names->sh_offset, names->sh_size);
  if (!texts) return Corrupt();
  const std::string_view all(reinterpret_cast<const char*>(texts->data()), texts->size());
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto found = section(i);
    if (!found || found->sh_name >= all.size()) return Corrupt();
    const std::string_view rest = all.substr(found->sh_name);
    if (rest.substr(0, rest.find('\0')) != name) continue;
    const auto part = Part(file, found->sh_offset, found->sh_type == SHT_NOBITS ? 0 : found->sh_size);
    if (!part) return Corrupt();
    return *part;
  }
  return File{};
}

// NVIDIA's container of kernels and of each part in it. Not documented; as cuobjdump reads them.
struct FatHeader {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size;
};
constexpr uint32_t kFatMagic = 0xBA55ED50;
struct FatPart {
  uint16_t kind, unknown;
  uint32_t header_size;
  uint64_t size;
  uint32_t compressed_size, options;
  uint16_t minor_version, major_version;
  uint32_t architecture;
};
constexpr uint16_t kPtx = 1, kMachineCode = 2;

void ReadParts(File container, std::set<CudaCode>& code) {
  while (true) {
    const auto part = At<FatPart>(container, 0);
    if (!part || part->header_size < sizeof(FatPart)) return;
    if (part->kind == kPtx || part->kind == kMachineCode)
      code.insert({.major = static_cast<int>(part->architecture / 10),
                   .minor = static_cast<int>(part->architecture % 10),
                   .is_ptx = part->kind == kPtx});
    const uint64_t rest = container.size() - part->header_size;
    if (container.size() < part->header_size || rest < part->size) return;
    container = container.subspan(part->header_size + part->size);
  }
}

std::set<CudaCode> ReadContainers(File section) {
  std::set<CudaCode> code;
  while (const auto header = At<FatHeader>(section, 0)) {
    uint64_t step = 8;  // they are aligned
    if (header->magic == kFatMagic && header->header_size >= sizeof(FatHeader)) {
      const auto container = Part(section, header->header_size, header->size);
      if (!container) break;
      ReadParts(*container, code);
      step = header->header_size + header->size;
    }
    if (step > section.size()) break;
    section = section.subspan(step);
  }
  return code;
}

int CudaMajor(File names) {
  constexpr std::string_view kRuntime = "libcudart.so.";
  const std::string_view all(reinterpret_cast<const char*>(names.data()), names.size());
  const size_t at = all.find(kRuntime);
  int major = 0;
  if (at != std::string_view::npos)
    std::from_chars(all.data() + at + kRuntime.size(), all.data() + all.size(), major);
  return major;
}

}  // namespace

Result<CudaLibraryFacts> ReadCudaLibrary(File file) {
  const std::set<CudaCode> code = ReadContainers(TRY(SectionOf(file, ".nv_fatbin")));
  return CudaLibraryFacts{.cuda_major = CudaMajor(TRY(SectionOf(file, ".dynstr"))),
                          .code = {code.begin(), code.end()}};
}

Result<CudaLibraryFacts> ReadCudaLibraryFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FailErrno(path, errno);
  struct stat facts{};
  ::fstat(fd, &facts);
  const auto size = static_cast<size_t>(facts.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (memory == MAP_FAILED) return FailErrno(path, error);
  auto read = ReadCudaLibrary({static_cast<const std::byte*>(memory), size});
  ::munmap(memory, size);
  if (!read) return Context(path, read.error());
  return read;
}

bool RunsOn(const std::vector<CudaCode>& code, int major, int minor) {
  return std::ranges::any_of(code, [&](const CudaCode& each) {
    const bool not_newer = each.major < major || (each.major == major && each.minor <= minor);
    return not_newer && (each.is_ptx || each.major == major);
  });
}

std::string ToString(const std::vector<CudaCode>& code) {
  std::string machine, ptx;
  for (const CudaCode& each : code) {
    std::string& text = each.is_ptx ? ptx : machine;
    text += fmt::format("{}{}.{}", text.empty() ? "" : ", ", each.major, each.minor);
  }
  if (ptx.empty()) return machine.empty() ? "none" : machine;
  return fmt::format("{}{}PTX {}", machine, machine.empty() ? "" : " and ", ptx);
}

}  // namespace weir::infer
