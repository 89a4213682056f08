// The outputs of detection models to boxes. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"
#include "watch/tracker.h"

namespace weir::watch {

// The forms of output that are known.
enum class DetectionHead {
  // YuNet (Wu et al. 2023): cls_S, obj_S [1,n,1] and bbox_S [1,n,4] for the strides 8, 16 and 32, over the
  // grid in row order. Centre = (cell + d) * S, size = exp(d) * S; score = sqrt(cls * obj).
  kYuNet,
  // FastestDet: one output [1,5+C,h,w]: objectness, box, class scores. Centre = (cell + tanh(d)) / grid,
  // size = sigmoid(d), score = obj^0.6 * class^0.4.
  kFastestDet,
  // SSD, one output [1,1,n,7]: picture, class, score, x0, y0, x1, y1 in shares. A negative picture ends the
  // list.
  kSsdRows,
  // SSD, two outputs: boxes [1,n,4] as x0, y0, x1, y1 in shares, and scores [1,n,C], class 0 the background.
  kSsdBoxes,
};
std::string_view ToString(DetectionHead head);  // "yunet", "fastestdet", "ssd-rows", "ssd-boxes"

// Finds the head by the names and shapes of the outputs. kUnsupported lists the heads that are known.
Result<DetectionHead> FindHead(std::span<const infer::TensorInfo> outputs);

struct DetectionOptions {
  float least_score = 0.6F;
  float most_overlap = 0.45F;  // of two boxes of a class: beyond it the lower score is suppressed
  int class_index = -1;        // only this class; -1: any
  int max_detections = 100;
};

// The boxes of one picture, by falling score, after non-maximum suppression and cut to the picture. `width`
// and `height` are the model's input in pixels. kCorrupt for outputs of other shapes, or with numbers that
// are not finite.
Result<std::vector<Detection>> ReadDetections(DetectionHead head, std::span<const infer::Tensor> outputs,
                                              int width, int height, const DetectionOptions& options);

// Greedy non-maximum suppression within each class. Returns the kept ones by falling score.
std::vector<Detection> SuppressOverlaps(std::vector<Detection> detections, const DetectionOptions& options);

}  // namespace weir::watch
