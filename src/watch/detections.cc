#include "watch/detections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace weir::watch {
namespace {

constexpr int kStrides[] = {8, 16, 32};
constexpr int64_t kMostValues = int64_t{1} << 26;

std::unexpected<Error> Corrupt(std::string message) { return Fail(ErrorCode::kCorrupt, std::move(message)); }

bool IsYuNet(std::span<const infer::TensorInfo> outputs) {
  return std::ranges::all_of(kStrides, [&](int stride) {
    return std::ranges::all_of(std::to_array({"cls_", "obj_", "bbox_"}), [&](const char* name) {
      return std::ranges::find(outputs, fmt::format("{}{}", name, stride), &infer::TensorInfo::name) !=
             outputs.end();
    });
  });
}

// An output as floats, of a shape that is checked.
struct Values {
  const float* data = nullptr;
  infer::Shape shape;
  int64_t at(size_t dimension) const { return shape[dimension]; }
};

Result<Values> Floats(const infer::Tensor& tensor, size_t rank) {
  if (tensor.dtype != infer::DType::kFp32 || tensor.shape.size() != rank)
    return Corrupt(fmt::format("output {} is {} {}, not FP32 of {} dimensions", tensor.name,
                               infer::ToString(tensor.dtype), infer::ToString(tensor.shape), rank));
  const int64_t count = TRY(infer::ElementCount(tensor.shape));
  if (count > kMostValues || tensor.data.size() != static_cast<size_t>(count) * sizeof(float))
    return Corrupt(
        fmt::format("output {} has {} bytes, not those of its shape", tensor.name, tensor.data.size()));
  const auto* data = reinterpret_cast<const float*>(tensor.data.data());
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i]))
      return Corrupt(
          fmt::format("output {} has values that are not finite: this engine does not compute the model "
                      "rightly; try --engine openvino",
                      tensor.name));
  }
  return Values{data, tensor.shape};
}

Result<Values> Named(std::span<const infer::Tensor> outputs, const std::string& name, size_t rank) {
  const auto found = std::ranges::find(outputs, name, &infer::Tensor::name);
  if (found == outputs.end()) return Corrupt(fmt::format("the model gave no output {}", name));
  return Floats(*found, rank);
}

struct Centred {
  float x, y, width, height;
};
Box ToBox(const Centred& c) {
  return {c.x - c.width / 2, c.y - c.height / 2, c.x + c.width / 2, c.y + c.height / 2};
}

Status ReadYuNet(std::span<const infer::Tensor> outputs, int width, int height, float least,
                 std::vector<Detection>& found) {
  for (const int stride : kStrides) {
    const Values cls = TRY(Named(outputs, fmt::format("cls_{}", stride), 3));
    const Values obj = TRY(Named(outputs, fmt::format("obj_{}", stride), 3));
    const Values box = TRY(Named(outputs, fmt::format("bbox_{}", stride), 3));
    const int64_t columns = width / stride, rows = height / stride, cells = columns * rows;
    if (cls.at(1) != cells || obj.at(1) != cells || box.at(1) != cells || cls.at(2) != 1 || obj.at(2) != 1 ||
        box.at(2) != 4)
      return Corrupt(fmt::format("outputs of stride {} do not have the {} cells of a {}x{} input", stride,
                                 cells, width, height));
    for (int64_t i = 0; i < cells; ++i) {
      const float score =
          std::sqrt(std::clamp(cls.data[i], 0.0F, 1.0F) * std::clamp(obj.data[i], 0.0F, 1.0F));
      if (score < least) continue;
      const float* const d = box.data + i * 4;
      const auto s = static_cast<float>(stride);
      const auto w = static_cast<float>(width), h = static_cast<float>(height);
      found.push_back({ToBox({(static_cast<float>(i % columns) + d[0]) * s / w,
                              (static_cast<float>(i / columns) + d[1]) * s / h, std::exp(d[2]) * s / w,
                              std::exp(d[3]) * s / h}),
                       score, 0});
    }
  }
  return {};
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

Status ReadFastestDet(std::span<const infer::Tensor> outputs, float least, std::vector<Detection>& found) {
  const Values v = TRY(Floats(outputs.front(), 4));
  const int64_t classes = v.at(1) - 5, rows = v.at(2), columns = v.at(3), cells = rows * columns;
  if (v.at(0) != 1 || classes < 1) return Corrupt("the output is not of one picture with classes");
  for (int64_t i = 0; i < cells; ++i) {
    const auto channel = [&](int64_t c) { return v.data[c * cells + i]; };
    const float object = std::clamp(channel(0), 0.0F, 1.0F);
    if (std::pow(object, 0.6F) < least) continue;
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (channel(5 + c) > channel(5 + best)) best = c;
    }
    const float score = std::pow(object, 0.6F) * std::pow(std::clamp(channel(5 + best), 0.0F, 1.0F), 0.4F);
    if (score < least) continue;
    found.push_back(
        {ToBox({(static_cast<float>(i % columns) + std::tanh(channel(1))) / static_cast<float>(columns),
                (static_cast<float>(i / columns) + std::tanh(channel(2))) / static_cast<float>(rows),
                Sigmoid(channel(3)), Sigmoid(channel(4))}),
         score, static_cast<int>(best)});
  }
  return {};
}

Status ReadSsdRows(std::span<const infer::Tensor> outputs, float least, std::vector<Detection>& found) {
  const Values v = TRY(Floats(outputs.front(), 4));
  if (v.at(3) != 7) return Corrupt("the output's rows do not have seven values");
  for (int64_t i = 0; i < v.at(2); ++i) {
    const float* const row = v.data + i * 7;
    if (row[0] < 0) break;
    if (row[2] < least || row[1] < 0 || row[1] > 1e6F) continue;
    found.push_back({{row[3], row[4], row[5], row[6]}, row[2], static_cast<int>(row[1])});
  }
  return {};
}

Status ReadSsdBoxes(std::span<const infer::Tensor> outputs, float least, std::vector<Detection>& found) {
  if (outputs.size() < 2) return Corrupt("the model gave fewer than two outputs");
  Values boxes = TRY(Floats(outputs[0], 3)), scores = TRY(Floats(outputs[1], 3));
  if (boxes.at(2) != 4) std::swap(boxes, scores);
  if (boxes.at(2) != 4 || boxes.at(1) != scores.at(1) || scores.at(2) < 2)
    return Corrupt("the outputs are not boxes [1,n,4] and scores [1,n,classes]");
  for (int64_t i = 0; i < boxes.at(1); ++i) {
    const float* const row = scores.data + i * scores.at(2);
    const auto best = static_cast<int>(std::max_element(row + 1, row + scores.at(2)) - row);
    if (row[best] < least) continue;
    const float* const b = boxes.data + i * 4;
    found.push_back({{b[0], b[1], b[2], b[3]}, row[best], best});
  }
  return {};
}

}  // namespace

std::string_view ToString(DetectionHead head) {
  switch (head) {
    case DetectionHead::kYuNet:
      return "yunet";
    case DetectionHead::kFastestDet:
      return "fastestdet";
    case DetectionHead::kSsdRows:
      return "ssd-rows";
    case DetectionHead::kSsdBoxes:
      return "ssd-boxes";
  }
  return "";
}

Result<DetectionHead> FindHead(std::span<const infer::TensorInfo> outputs) {
  if (IsYuNet(outputs)) return DetectionHead::kYuNet;
  if (outputs.size() == 1 && outputs[0].shape.size() == 4) {
    if (outputs[0].shape[3] == 7) return DetectionHead::kSsdRows;
    if (outputs[0].shape[1] > 5) return DetectionHead::kFastestDet;
  }
  if (outputs.size() == 2 && outputs[0].shape.size() == 3 && outputs[1].shape.size() == 3 &&
      (outputs[0].shape[2] == 4 || outputs[1].shape[2] == 4))
    return DetectionHead::kSsdBoxes;
  return Fail(
      ErrorCode::kUnsupported,
      "its outputs are not those of a detection model that is known: YuNet (cls_8, obj_8, bbox_8, ...), "
      "FastestDet [1,5+classes,h,w], SSD rows [1,1,n,7], or SSD boxes [1,n,4] with scores [1,n,classes]");
}

std::vector<Detection> SuppressOverlaps(std::vector<Detection> detections, const DetectionOptions& options) {
  std::ranges::stable_sort(detections, std::ranges::greater{}, &Detection::score);
  std::vector<Detection> kept;
  for (const Detection& each : detections) {
    if (std::ssize(kept) >= options.max_detections) break;
    const bool suppressed = std::ranges::any_of(kept, [&](const Detection& better) {
      return better.class_index == each.class_index && Overlap(better.box, each.box) > options.most_overlap;
    });
    if (!suppressed) kept.push_back(each);
  }
  return kept;
}

Result<std::vector<Detection>> ReadDetections(DetectionHead head, std::span<const infer::Tensor> outputs,
                                              int width, int height, const DetectionOptions& options) {
  std::vector<Detection> found;
  if (outputs.empty()) return Corrupt("the model gave no output");
  switch (head) {
    case DetectionHead::kYuNet:
      TRY_STATUS(ReadYuNet(outputs, width, height, options.least_score, found));
      break;
    case DetectionHead::kFastestDet:
      TRY_STATUS(ReadFastestDet(outputs, options.least_score, found));
      break;
    case DetectionHead::kSsdRows:
      TRY_STATUS(ReadSsdRows(outputs, options.least_score, found));
      break;
    case DetectionHead::kSsdBoxes:
      TRY_STATUS(ReadSsdBoxes(outputs, options.least_score, found));
      break;
  }
  if (options.class_index >= 0)
    std::erase_if(found, [&](const Detection& d) { return d.class_index != options.class_index; });
  for (Detection& each : found) {
    Box& b = each.box;
    b = {std::clamp(b.x0, 0.0F, 1.0F), std::clamp(b.y0, 0.0F, 1.0F), std::clamp(b.x1, 0.0F, 1.0F),
         std::clamp(b.y1, 0.0F, 1.0F)};
  }
  std::erase_if(found, [](const Detection& d) { return d.box.area() <= 0; });
  return SuppressOverlaps(std::move(found), options);
}

}  // namespace weir::watch
