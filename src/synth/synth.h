// Makes model folders: networks of true shape and work with synthetic weights, whose answers to made pictures
// are right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"

namespace weir::synth {

// "tiny", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "identity".
std::vector<std::string> ModelNames();

struct MakeOptions {
  std::string name;                    // one of ModelNames()
  std::string out_dir;                 // gets the folder `name`; made when it is not there
  Seed seed{1};                        // of the weights and of the pictures the last layer is fitted to
  bool overwrite = false;              // an existing folder of that name is replaced; otherwise it is refused
  std::string engine = "onnxruntime";  // computes the features
  // The last layer is fitted to. 16 place 98 of 100 fresh pictures rightly, 10 some 95; the time grows with
  // it.
  int pictures_per_class = 16;
  std::stop_token stop;  // asked for between batches
  // Told of the pictures fitted so far, on the calling thread. May be empty.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct MadeModel {
  std::string folder;
  uint64_t model_bytes = 0;  // of 1/model.onnx
  int classes = 0;           // 0 for identity, as below
  int64_t pictures = 0;      // the last layer was fitted to
  // Share of those pictures that a fit without the picture places rightly: what to expect of fresh ones.
  std::optional<double> expected_accuracy;
  Duration wall{0};
};

// Makes out_dir/name in Triton's layout: config.pbtxt, labels.txt, recipe.yaml, 1/model.onnx (identity has no
// labels and no recipe). The folder appears whole or not at all. The same seed gives the same weights on
// every machine; the last layer depends in its last digits on the engine's arithmetic. Uses every CPU of the
// process; a ResNet-50 takes about 25 s on two. kInvalidArgument for a bad option or a folder that is
// there already; kNotFound when the engine is not on this machine; kCancelled when `stop` was asked for; kIo.
Result<MadeModel> MakeModel(const MakeOptions& options, const Clock& clock);

// Returns a line for people: the folder, its size, the time, and the accuracy to expect.
std::string MadeText(const MadeModel& made);

}  // namespace weir::synth
