#include "advise/workload.h"

#include <fmt/format.h>

#include "yaml/strict.h"

namespace weir::advise {
namespace {

using yaml::Into;
using yaml::Node;
using yaml::NumberInto;
using yaml::Place;
using yaml::ReadMap;
using yaml::Refuse;
using yaml::TextInto;

constexpr double kMost = 1e15;
constexpr int kMostCount = 1'000'000;
constexpr size_t kMostFileBytes = size_t{1} << 20;

// Reads a list of maps, each by the keys that `keys` returns for a new element.
template <typename Value, typename Keys>
yaml::Read ListInto(std::vector<Value>& values, Keys keys) {
  return [&values, keys](const Node& node, const Place& place) -> Status {
    if (!node.IsSequence()) return Refuse(place, "is no list: put \"- \" before each entry");
    for (const Node& entry : node) {
      Value value;
      const Place at = yaml::PlaceOf(entry, place.key);
      TRY_STATUS(ReadMap(entry, at, keys(value)));
      if (value.name.empty()) return Refuse(at, "lacks the key name");
      values.push_back(std::move(value));
    }
    return {};
  };
}

std::vector<yaml::Key> KeysOf(TrainingWork& training) {
  return {{"name", TextInto(training.name)},
          {"accelerators", NumberInto(training.accelerators, 1, kMostCount)},
          {"profile", TextInto(training.profile)},
          {"samples_per_s", NumberInto(training.samples_per_s, 1e-6, kMost)},
          {"sample_bytes", NumberInto(training.sample_bytes, 1.0, kMost)}};
}

std::vector<yaml::Key> KeysOf(InferenceWork& inference) {
  return {{"name", TextInto(inference.name)},
          {"streams", NumberInto(inference.streams, 1, kMostCount)},
          {"frames_per_s", NumberInto(inference.frames_per_s, 1e-6, kMost)},
          {"frame_bytes", NumberInto(inference.frame_bytes, 1.0, kMost)},
          {"model", TextInto(inference.model)}};
}

std::vector<yaml::Key> KeysOf(PreparationWork& preparation) {
  return {{"name", TextInto(preparation.name)},
          {"images", NumberInto(preparation.images, 1.0, kMost)},
          {"image_bytes", NumberInto(preparation.image_bytes, 1.0, kMost)},
          {"written_bytes", NumberInto(preparation.written_bytes, 1.0, kMost)},
          {"within_hours", NumberInto(preparation.within_hours, 1e-3, 1e6)}};
}

}  // namespace

Result<Workload> ParseWorkload(std::string_view text) {
  Workload workload;
  const auto keys_of = [](auto& value) { return KeysOf(value); };
  TRY_STATUS(
      yaml::ReadFile(text, kMostFileBytes, "workload", [&](const Node& root, const Place& place) -> Status {
        TRY_STATUS(
            ReadMap(root, place,
                    {{"plan", TextInto(workload.name)},
                     {"training", ListInto(workload.training, keys_of)},
                     {"inference", ListInto(workload.inference, keys_of)},
                     {"preparation", ListInto(workload.preparation, keys_of)},
                     {"busy_percent", NumberInto(workload.busy_percent, 1.0, 100.0)},
                     {"accelerators_per_host", NumberInto(workload.accelerators_per_host, 1, kMostCount)},
                     {"link_gbit_per_s", NumberInto(workload.link_gbit_per_s, 1e-6, 1e6)},
                     {"have", [&](const Node& node, const Place& have) {
                        return ReadMap(node, have,
                                       {{"storage", NumberInto(workload.storage, 1, kMostCount)},
                                        {"links", NumberInto(workload.links, 1, kMostCount)},
                                        {"hosts", NumberInto(workload.hosts, 1, kMostCount)}});
                      }}}));
        if (workload.training.empty() && workload.inference.empty() && workload.preparation.empty())
          return Refuse(place, "names no work: give training, inference or preparation");
        for (const TrainingWork& training : workload.training)
          if (training.profile.empty() && !(training.samples_per_s && training.sample_bytes))
            return Refuse(place, fmt::format("training {}: give profile, or samples_per_s and sample_bytes",
                                             training.name));
        for (const InferenceWork& inference : workload.inference)
          if (inference.frame_bytes <= 0)
            return Refuse(place, fmt::format("inference {}: give frame_bytes", inference.name));
        for (const PreparationWork& preparation : workload.preparation)
          if (preparation.images <= 0 || preparation.image_bytes <= 0)
            return Refuse(place,
                          fmt::format("preparation {}: give images and image_bytes", preparation.name));
        return {};
      }));
  return workload;
}

}  // namespace weir::advise
