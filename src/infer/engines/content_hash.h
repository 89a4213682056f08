// A 64-bit hash of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::infer {

// XXH64 (Collet; specification in the xxHash repository, doc/xxhash_spec.md): four lanes of multiply and
// rotate, several GB/s on any 64-bit CPU. Not against an adversary.
uint64_t ContentHash(std::span<const std::byte> data, uint64_t seed = 0);

}  // namespace weir::infer
