// A model folder in Triton's layout, and where its parts lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/config.h"

namespace weir::model {

struct Folder {
  std::string name;     // the folder's own
  std::string path;     // links followed
  std::string version;  // "1"; empty where there is no version folder and none is needed
  std::string model;    // the ONNX file, as it is named; empty where the emulated backend needs none
  std::vector<std::string> roots;  // links may lead below these too
  std::optional<Config> config;
};

struct FolderOptions {
  std::string version;  // empty: the newest that the configuration allows
  std::string config;   // JSON instead of config.pbtxt; empty: the folder's own
  std::vector<std::string> link_roots;
};
// kNotFound says which file is missing; ParseConfig's errors; kInvalidArgument for a name that is not the
// folder's.
Result<Folder> OpenFolder(const std::string& path, const FolderOptions& options);

// The versions that the configuration wants served, rising: those there are, and those it names one by one.
Result<std::vector<std::string>> FolderVersions(const std::string& path, const FolderOptions& options);

// Returns the path of `name` in the folder, links followed; empty when it is not there. kInvalidArgument when
// it lies outside, by "..", an absolute name, or a link that leads below none of the roots, and for a link
// that leads nowhere: a model is untrusted data, and no file of somebody else's is read for it, or looked
// for.
Result<std::string> PartOf(const Folder& folder, const std::string& name);

}  // namespace weir::model
