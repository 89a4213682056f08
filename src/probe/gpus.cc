#include "gpu/driver.h"
#include "monitor/gpu.h"
#include "probe/host_reader.h"

namespace weir::probe {

GpusFacts ReadGpus() {
  GpusFacts facts;
  const auto reader = monitor::GpuReader::Open();
  facts.library = reader || reader.error().code != ErrorCode::kNotFound;
  if (!reader) {
    facts.problem = reader.error().message.substr(reader.error().message.starts_with("NVML: ") ? 6 : 0);
    return facts;
  }
  facts.driver = (*reader)->driver();
  const auto samples = (*reader)->Read();
  for (size_t i = 0; i < samples.size(); ++i)
    facts.gpus.push_back({.device = (*reader)->devices()[i], .now = samples[i], .cuda_index = {}});
  const auto cuda = gpu::Driver::Open();
  if (!cuda) {
    facts.cuda_problem = cuda.error().message;
    return facts;
  }
  facts.cuda_version = gpu::VersionText((*cuda)->version());
  // CUDA may count them otherwise, and not see all: CUDA_VISIBLE_DEVICES.
  for (GpuFacts& card : facts.gpus) {
    for (const gpu::DeviceFacts& device : (*cuda)->devices()) {
      if (!card.device.uuid.empty() && device.uuid == card.device.uuid) card.cuda_index = device.ordinal;
    }
  }
  return facts;
}

}  // namespace weir::probe
