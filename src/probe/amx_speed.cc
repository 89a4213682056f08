#include "probe/amx_speed.h"

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace weir::probe {
namespace {

// A tile has 16 rows of 64 bytes. The product is of kBlocks x kBlocks blocks of two by two tiles, each the
// sum over kDepth tiles: 512 KiB of each factor, which the second cache holds, as in a library's product.
constexpr int kRows = 16, kRowBytes = 64, kTile = kRows * kRowBytes;
constexpr int kBlocks = 8, kDepth = 32;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Both factors as panels: for each block, and each tile of the depth, its two tiles one after the other.
struct Factors {
  std::vector<uint8_t> left, right, sums;
  Factors()
      : left(size_t{kBlocks} * kDepth * 2 * kTile + kRowBytes, 1),
        right(left.size(), 1),
        sums(size_t{kBlocks} * kBlocks * 4 * kTile + kRowBytes) {}
};

uint8_t* Aligned(std::vector<uint8_t>& bytes) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (kRowBytes - address % kRowBytes) % kRowBytes;
}

// The intrinsics of tiles take numbers of tiles as constants of the source, so each product is written out.
#define WEIR_AMX_PRODUCT(multiply)                                                                    \
  static thread_local Factors factors;                                                                \
  const uint8_t *left = Aligned(factors.left), *right = Aligned(factors.right);                       \
  uint8_t* const sums = Aligned(factors.sums);                                                        \
  TileConfig config;                                                                                  \
  for (int tile = 0; tile < 8; ++tile) config.row_bytes[tile] = kRowBytes, config.rows[tile] = kRows; \
  _tile_loadconfig(&config);                                                                          \
  for (int row = 0; row < kBlocks; ++row) {                                                           \
    for (int column = 0; column < kBlocks; ++column) {                                                \
      const uint8_t* a = left + row * kDepth * 2 * kTile;                                             \
      const uint8_t* b = right + column * kDepth * 2 * kTile;                                         \
      uint8_t* const c = sums + (row * kBlocks + column) * 4 * kTile;                                 \
      _tile_zero(0);                                                                                  \
      _tile_zero(1);                                                                                  \
      _tile_zero(2);                                                                                  \
      _tile_zero(3);                                                                                  \
      for (int k = 0; k < kDepth; ++k, a += 2 * kTile, b += 2 * kTile) {                              \
        _tile_loadd(4, a, kRowBytes);                                                                 \
        _tile_loadd(6, b, kRowBytes);                                                                 \
        multiply(0, 4, 6);                                                                            \
        _tile_loadd(7, b + kTile, kRowBytes);                                                         \
        multiply(1, 4, 7);                                                                            \
        _tile_loadd(5, a + kTile, kRowBytes);                                                         \
        multiply(2, 5, 6);                                                                            \
        multiply(3, 5, 7);                                                                            \
      }                                                                                               \
      _tile_stored(0, c, kRowBytes);                                                                  \
      _tile_stored(1, c + kTile, kRowBytes);                                                          \
      _tile_stored(2, c + 2 * kTile, kRowBytes);                                                      \
      _tile_stored(3, c + 3 * kTile, kRowBytes);                                                      \
    }                                                                                                 \
  }                                                                                                   \
  _tile_release();                                                                                    \
  sink += static_cast<float>(sums[0]);                                                                \
  constexpr double kTiles = double{kBlocks} * kBlocks * kDepth * 4;

__attribute__((target("amx-tile,amx-bf16"))) double Bf16Product(float& sink) {
  WEIR_AMX_PRODUCT(_tile_dpbf16ps)
  return kTiles * kRows * kRows * (kRowBytes / 2);
}

__attribute__((target("amx-tile,amx-int8"))) double Int8Product(float& sink) {
  WEIR_AMX_PRODUCT(_tile_dpbssd)
  return kTiles * kRows * kRows * kRowBytes;
}
#undef WEIR_AMX_PRODUCT

// Linux gives the registers of tiles to a process that asks (Documentation/arch/x86/xstate.rst).
bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

AmxKernels FindAmxKernels() {
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24, kInt8 = 1U << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0 || !MayUseTiles()) return {};
  return {.bf16 = (d & kBf16) != 0 ? Bf16Product : nullptr, .int8 = (d & kInt8) != 0 ? Int8Product : nullptr};
}

}  // namespace weir::probe

#else

namespace weir::probe {
AmxKernels FindAmxKernels() { return {}; }
}  // namespace weir::probe

#endif
