// The contents of a library for CUDA: for which cards its kernels were compiled, and which CUDA it wants.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::infer {

// Kernels for one compute capability. Machine code runs on cards of the same major number and an equal or
// higher minor one; PTX is compiled by the driver for any card that is not older.
struct CudaCode {
  int major = 0, minor = 0;
  bool is_ptx = false;
  auto operator<=>(const CudaCode&) const = default;
};

struct CudaLibraryFacts {
  int cuda_major = 0;          // of the libcudart that it is linked to; 0: it is linked to none
  std::vector<CudaCode> code;  // each once, rising
};

// Reads an ELF file for x86-64: its section .nv_fatbin and the names of the libraries that it needs.
// kCorrupt for what is none. Only the headers of the section's parts are looked at.
Result<CudaLibraryFacts> ReadCudaLibrary(std::span<const std::byte> file);
// The same of a file, which is mapped and not read.
Result<CudaLibraryFacts> ReadCudaLibraryFile(const std::string& path);

bool RunsOn(const std::vector<CudaCode>& code, int major, int minor);
std::string ToString(const std::vector<CudaCode>& code);  // "7.5, 8.0, 9.0 and PTX 9.0"

}  // namespace weir::infer
