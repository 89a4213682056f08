#include "infer/engines/cuda_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "infer/engine.h"

namespace weir::infer {
namespace {

constexpr char kProvider[] = "libonnxruntime_providers_cuda.so";

std::unexpected<Error> Missing(std::string message) { return Fail(ErrorCode::kNotFound, std::move(message)); }

std::vector<std::string> Folders() {
  if (const char* named = std::getenv("WEIR_CUDA"); named != nullptr && *named != '\0') return {named};
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return {program.parent_path().string() + "/../lib/weir/cuda", WEIR_DEPS_DIR "/cuda"};
}

// NVIDIA's libraries in the order in which they need one another. The provider opens the last ones only for
// some models.
struct Needed {
  const char* name;
  int major_12, major_13;  // their own number with CUDA 12 and 13
  bool always;
};
constexpr Needed kNeeded[] = {{"libcudart", 12, 13, true},   {"libnvrtc", 12, 13, false},
                              {"libcublasLt", 12, 13, true}, {"libcublas", 12, 13, true},
                              {"libcurand", 10, 10, true},   {"libcufft", 11, 12, false},
                              {"libcudnn", 9, 9, true}};

// Opens it for good, so that what needs it by name finds it.
Status Preload(const std::string& folder, const Needed& needed, int cuda_major) {
  const std::string file =
      fmt::format("{}.so.{}", needed.name, cuda_major == 12 ? needed.major_12 : needed.major_13);
  const std::string path = folder + "/" + file;
  if (::access(path.c_str(), F_OK) == 0) {
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return {};
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: install it again with `./dev setup --cuda`", ::dlerror()));
  }
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr || !needed.always) return {};
  return Missing(
      fmt::format("{} is missing (looked in {} and on the system's library path): install it with "
                  "`./dev setup --cuda{}`",
                  file, folder, cuda_major == 12 ? " 12" : ""));
}

}  // namespace

std::optional<std::string> FindCudaFolder() {
  for (std::string& folder : Folders()) {
    if (::access((folder + "/" + kProvider).c_str(), F_OK) == 0) return std::move(folder);
  }
  return std::nullopt;
}

Result<std::vector<int>> FindCudaDevices(const gpu::Driver& driver, const std::vector<Device>& wanted) {
  const auto& there = driver.devices();
  std::string names;
  for (const gpu::DeviceFacts& device : there)
    names += fmt::format("{}cuda:{} ({}, {})", names.empty() ? "" : ", ", device.ordinal, device.name,
                         device.uuid);
  if (there.empty())
    return Fail(ErrorCode::kUnsupported,
                fmt::format("device {}: CUDA finds no GPU: look at nvidia-smi, and at CUDA_VISIBLE_DEVICES",
                            ToString(wanted)));
  std::vector<int> ordinals;
  for (const Device& device : wanted) {
    const auto is_meant = [&](const gpu::DeviceFacts& facts) {
      return device.uuid.empty() ? device.index == Device::kAll || device.index == facts.ordinal
                                 : facts.uuid.starts_with(device.uuid);
    };
    const auto found = std::ranges::find_if(there, is_meant);
    if (found == there.end()) {
      // CUDA enumerates one instance of a divided card, the first unless it is told.
      const char* const remedy =
          device.uuid.starts_with("MIG-")
              ? "; CUDA_VISIBLE_DEVICES=MIG-UUID chooses another instance (nvidia-smi -L)"
              : "";
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("device {} is not there: CUDA finds {}{}", ToString(device), names, remedy));
    }
    if (!device.uuid.empty() && std::ranges::count_if(there, is_meant) > 1)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("device {} begins several identifiers: CUDA finds {}", ToString(device), names));
    for (const gpu::DeviceFacts& facts : there) {
      if (device.index == Device::kAll || facts.ordinal == found->ordinal) ordinals.push_back(facts.ordinal);
    }
  }
  std::ranges::sort(ordinals);
  if (std::ranges::adjacent_find(ordinals) != ordinals.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("device {} names one GPU twice: CUDA finds {}", ToString(wanted), names));
  return ordinals;
}

Status CheckDriver(int driver_version, int cuda_major) {
  if (cuda_major == 0 || driver_version / 1000 >= cuda_major) return {};
  const char* const least = cuda_major == 12 ? "525" : "580";
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("NVIDIA's driver serves CUDA {} and the engine wants CUDA {}: update the driver to "
                  "{} or later{}",
                  gpu::VersionText(driver_version), cuda_major, least,
                  cuda_major > 12 ? ", or install the engine for CUDA 12 with `./dev setup --cuda 12`" : ""));
}

Status CheckCard(const gpu::DeviceFacts& card, const CudaLibraryFacts& library) {
  if (RunsOn(library.code, card.major, card.minor)) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("cuda:{} ({}) has compute capability {}.{}, and the engine holds kernels for {}: {}",
                  card.ordinal, card.name, card.major, card.minor, ToString(library.code),
                  library.cuda_major > 12 && card.major < 8
                      ? "install the engine for CUDA 12 with `./dev setup --cuda 12`"
                      : "install a version of the engine for this card, or use another card"));
}

Result<CudaLibraries> OpenCudaLibraries(const gpu::Driver& driver, const std::vector<int>& ordinals) {
  const auto folder = FindCudaFolder();
  if (!folder)
    return Missing(
        fmt::format("the engine onnxruntime for CUDA is not on this machine ({} was looked for in "
                    "{}): install it with `./dev setup --cuda`, or name its folder in WEIR_CUDA",
                    kProvider, fmt::join(Folders(), ", ")));
  CudaLibraryFacts facts = TRY(ReadCudaLibraryFile(*folder + "/" + kProvider));
  TRY_STATUS(CheckDriver(driver.version(), facts.cuda_major));
  for (const int ordinal : ordinals)
    TRY_STATUS(CheckCard(driver.devices()[static_cast<size_t>(ordinal)], facts));
  for (const Needed& needed : kNeeded) TRY_STATUS(Preload(*folder, needed, facts.cuda_major));
  auto library = TRY(SharedLibrary::OpenIn(
      {*folder}, {.engine = "onnxruntime for CUDA", .files = {"libonnxruntime.so.1"}, .folder = ""}));
  return CudaLibraries{.onnxruntime = std::move(library), .facts = std::move(facts)};
}

}  // namespace weir::infer
