// Stands for NVIDIA's libraries and for the provider: a file that the loader opens. With FAKE_ARCHITECTURE it
// holds kernels, as the provider does, for that compute capability (90: 9.0), in FAKE_KIND (1: PTX, 2:
// machine code), and names the runtime of CUDA FAKE_CUDA_MAJOR.
#include <cstdint>

extern "C" int WeirFakeLibrary() { return 1; }

#ifdef FAKE_ARCHITECTURE
namespace {
struct [[gnu::packed]] Fat {
  uint32_t magic = 0xBA55ED50;
  uint16_t version = 1, header_size = 16;
  uint64_t size = 64 + 8;
  uint16_t kind = FAKE_KIND, unknown = 0x101;
  uint32_t part_header = 64;
  uint64_t part_size = 8;
  uint32_t compressed = 0, options = 0;
  uint16_t minor = 0, major = 0;
  uint32_t architecture = FAKE_ARCHITECTURE;
  uint8_t rest[32] = {};
  uint64_t code = 0;
};
static_assert(sizeof(Fat) == 16 + 64 + 8);
[[gnu::section(".nv_fatbin"), gnu::used]] const Fat fat;
}  // namespace
#endif
