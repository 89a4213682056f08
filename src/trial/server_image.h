// The container image of weir's own server, made where it is first needed.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "study/design.h"

namespace weir::trial {

// Whether some configuration starts weir's own server in a container.
bool NeedsServerImage(const study::Design& design);

struct ImageBuild {
  std::string script;  // tools/container.sh of the checkout that `program` was built in
  std::string tool;    // "podman" or "docker"
};

// Returns how the image is built: `program` lies in build/PRESET/ of a checkout with tools/container.sh, one
// of the tools is there, and none of them has `image` yet. Returns nullopt otherwise: what is then missing is
// said by the check of the first server.
std::optional<ImageBuild> FindImageBuild(const std::string& program, const std::string& image,
                                         const Clock& clock);

// Blocks until the image is built, minutes at the most. kIo with the script's last words.
Status BuildImage(const ImageBuild& build, const std::string& program, const std::string& image,
                  const Clock& clock);

}  // namespace weir::trial
