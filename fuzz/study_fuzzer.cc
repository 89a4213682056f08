// Study files: any text is a study or a refusal; a study's design is the same each time, and holds what it
// promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "study/design.h"

namespace {

using namespace weir;

// Combinations that the file asks for: the limits of a design are far above what a fuzzer has time for.
double Asked(const study::StudyFile& file) {
  const auto product = [](const study::LevelLists& lists) {
    double count = 1;
    for (const study::FactorLevels& one : lists) count *= static_cast<double>(one.levels.size());
    return count;
  };
  double count = product(file.factors);
  for (const study::LevelLists& lists : file.also) count += product(lists);
  return count;
}

void CheckDesign(const study::StudyFile& file, const study::Design& design) {
  CHECK(!design.configurations.empty() && design.reference < design.configurations.size());
  CHECK(design.trials.size() == (design.configurations.size() + 3) * static_cast<size_t>(file.repeats));
  std::set<std::string> ids;
  for (const study::Trial& trial : design.trials) {
    CHECK(trial.configuration < design.configurations.size());
    CHECK(!trial.is_reference() || trial.configuration == design.reference);
    CHECK(ids.insert(trial.id).second);
  }
  for (const study::Configuration& one : design.configurations)
    CHECK(!one.label.empty() && one.factors.contains("model"));
  CHECK(study::PilotTrials(design).size() <= 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  Result<study::StudyFile> file = study::ParseStudy(yaml);
  if (!file) {
    CHECK(file.error().code == ErrorCode::kInvalidArgument);
    CHECK(!file.error().message.empty());
    return 0;
  }
  const std::string json = DumpJson(file->ToJson());
  CHECK(DumpJson(ParseJson(json).value()) == json);  // what a digest is made of
  if (Asked(*file) > 500) return 0;
  file->repeats = std::min(file->repeats, 3);
  const Result<study::Design> design = study::MakeDesign(*file);
  if (!design) return 0;
  CheckDesign(*file, *design);
  CHECK(DumpJson(ToJson(*design)) == DumpJson(ToJson(study::MakeDesign(*file).value())));
  return 0;
}
