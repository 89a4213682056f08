#include "trial/server_image.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "launch/process/command.h"
#include "study/choices.h"

namespace weir::trial {
namespace {

constexpr Duration kLongestBuild = 20min;

// Asks a tool for an image. Returns nullopt where there is no such tool, or it does not work here.
std::optional<bool> Has(const std::string& tool, const std::string& image, const Clock& clock) {
  const auto works = launch::RunCommand({.arguments = {tool, "image", "ls", "-q"}}, clock);
  if (!works || works->ending != launch::Ending{}) return std::nullopt;
  const auto found = launch::RunCommand({.arguments = {tool, "image", "inspect", image}}, clock);
  return found && found->ending == launch::Ending{};
}

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return EscapeBytes(text.substr(text.rfind('\n') + 1));
}

}  // namespace

bool NeedsServerImage(const study::Design& design) {
  return std::ranges::any_of(design.configurations, [](const study::Configuration& one) {
    const Json& factors = one.factors;
    return factors.value("architecture", Json()) == ToString(study::Architecture::kMicroservice) &&
           factors.value("server", Json("weir")) == "weir";
  });
}

std::optional<ImageBuild> FindImageBuild(const std::string& program, const std::string& image,
                                         const Clock& clock) {
  const std::filesystem::path checkout = std::filesystem::path(program).parent_path() / ".." / "..";
  std::error_code error;
  const std::filesystem::path script =
      std::filesystem::weakly_canonical(checkout, error) / "tools/container.sh";
  if (error || !std::filesystem::exists(script, error)) return std::nullopt;
  std::optional<std::string> tool;
  for (const char* name : {"podman", "docker"}) {
    const auto has = Has(name, image, clock);
    if (!has) continue;
    if (*has) return std::nullopt;
    if (!tool) tool = name;
  }
  if (!tool) return std::nullopt;
  return ImageBuild{.script = script.string(), .tool = *std::move(tool)};
}

Status BuildImage(const ImageBuild& build, const std::string& program, const std::string& image,
                  const Clock& clock) {
  const launch::Output output =
      TRY(launch::RunCommand({.arguments = {build.script, image},
                              .environment = {"WEIR_PROGRAM=" + program, "WEIR_CONTAINER_TOOL=" + build.tool},
                              .timeout = kLongestBuild},
                             clock));
  if (output.ending == launch::Ending{}) return {};
  return Fail(ErrorCode::kIo, "the container image could not be built: " + LastLine(output.err));
}

}  // namespace weir::trial
