// What a picture costs: all of its codes and one pixel of it, which is the floor under everything; and what a
// model of 224 by 224 pixels wants of it. CPU time, per picture, of the JPEGs in the folder WEIR_PICTURES,
// each at its fastest of all passes, which other work on the machine disturbs least.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "dataset/preparer.h"

namespace weir::dataset {
namespace {

const std::vector<Bytes>& Pictures() {
  static const std::vector<Bytes> pictures = [] {
    std::vector<Bytes> read;
    const char* folder = std::getenv("WEIR_PICTURES");
    std::error_code none_there;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder == nullptr ? "" : folder, none_there)) {
      const auto bytes = ReadFile(entry.path(), 100 << 20);
      if (bytes && image::SniffFormat(bytes->span()) == image::PictureFormat::kJpeg) read.push_back(*bytes);
    }
    return read;
  }();
  return pictures;
}

// Calls `work` with each picture, pass after pass.
template <typename Work>
void Measure(benchmark::State& state, const Work& work) {
  if (Pictures().empty()) return state.SkipWithError("WEIR_PICTURES names no folder of JPEGs");
  std::vector<double> fastest(Pictures().size(), std::numeric_limits<double>::max());
  for (auto _ : state) {
    for (size_t i = 0; i < fastest.size(); ++i) {
      const Duration begin = ThreadCpuTime();
      work(Pictures()[i].span());
      fastest[i] = std::min(fastest[i], Seconds(ThreadCpuTime() - begin));
    }
  }
  double sum = 0;
  for (const double seconds : fastest) sum += seconds;
  state.counters["ms_a_picture"] = 1000 * sum / static_cast<double>(fastest.size());
}

void OnePixel(benchmark::State& state) {
  image::Decoder decoder;
  image::Pixels pixel;
  Measure(state, [&](std::span<const std::byte> picture) {
    const auto info = image::ReadPictureInfo(picture, {});
    if (!info || !decoder.Decode(picture, *info, {0, 0, 1, 1}, {}, pixel))
      state.SkipWithError("a picture is damaged");
  });
}
BENCHMARK(OnePixel)->Unit(benchmark::kMillisecond);

void ForAModel(benchmark::State& state) {
  const Geometry geometry{.short_side = 256, .crop = Size{224, 224}};
  Preparer preparer = Preparer::OfAll({geometry}, {.shrink = state.range(0) == 1});
  Measure(state, [&](std::span<const std::byte> picture) {
    if (!preparer.Prepare(picture)) state.SkipWithError("a picture is damaged");
  });
}
BENCHMARK(ForAModel)->ArgName("shrink")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::dataset

BENCHMARK_MAIN();
