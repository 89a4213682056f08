#include "onnx/safety.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::onnx {
namespace {

namespace fs = std::filesystem;

// Operators that the engines have built in. Everything else needs a library of somebody's code.
constexpr std::array<std::string_view, 8> kBuiltInDomains = {"",
                                                             "ai.onnx",
                                                             "ai.onnx.ml",
                                                             "ai.onnx.training",
                                                             "ai.onnx.preview.training",
                                                             "com.microsoft",
                                                             "com.microsoft.nchwc",
                                                             "com.microsoft.experimental"};
// Built in, but they load a file or code that the node names.
constexpr std::array<std::string_view, 3> kLoadingOperators = {"EPContext", "PythonOp", "PythonOpGrad"};
// onnxruntime takes this location for an address in its own memory.
constexpr std::string_view kMemoryAddressMark = "_ORT_MEM_ADDR_";
// After all functions are written out in place of their calls; protects engines, which do that, from "billion
// laughs".
constexpr int64_t kMaxExpandedNodes = 10'000'000;
constexpr int kMaxOpenFunctions = 32;  // functions within functions; bounds the recursion here and in net.cc

std::string Shown(std::string_view name) {
  constexpr size_t kLongest = 120;
  std::string shown(name.substr(0, kLongest));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return name.size() > kLongest ? shown + "..." : shown;
}

std::unexpected<Error> Refuse(std::string_view thing, std::string_view name, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("refused: {} \"{}\" {}", thing, Shown(name), why));
}

std::unexpected<Error> BadDimensions(std::string_view tensor) {
  return Fail(ErrorCode::kCorrupt,
              fmt::format("tensor \"{}\" has dimensions that are negative or too large", Shown(tensor)));
}

std::optional<uint64_t> ParseCount(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Checker {
 public:
  Checker(const pb::ModelProto& model, const Places& places) : model_(model), places_(places) {}

  Status CheckModel();
  uint64_t external_bytes() const;

 private:
  using FunctionKey = std::pair<std::string, std::string>;  // domain, name

  Status CheckGraph(const pb::GraphProto& graph);
  Status CheckNode(const pb::NodeProto& node);
  Status CheckAttribute(const pb::AttributeProto& attribute);
  Status CheckSparse(const pb::SparseTensorProto& sparse);
  Status CheckTensor(const pb::TensorProto& tensor);
  Status CheckExternal(const pb::TensorProto& tensor);
  Result<uint64_t> FileSize(const std::string& tensor, const std::string& location);
  bool LeadsOut(const std::string& link) const;

  // Nodes of a function, with those of the functions it calls in place of the calls. Overloads, which the
  // messages linked here cannot tell apart, count together.
  Result<int64_t> ExpandedNodes(const FunctionKey& key);
  Result<int64_t> ExpandedNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes);

  const pb::ModelProto& model_;
  const Places& places_;
  std::map<FunctionKey, std::vector<const pb::FunctionProto*>> functions_;  // several: overloads
  std::map<FunctionKey, std::optional<int64_t>>
      expanded_;                              // absent while being counted: a call to it is a circle
  int open_ = 0;                              // functions being counted
  std::map<std::string, uint64_t> external_;  // size by location
};

Status Checker::CheckModel() {
  for (const auto& function : model_.functions())
    functions_[{function.domain(), function.name()}].push_back(&function);
  TRY_STATUS(CheckGraph(model_.graph()));
  for (const auto& training : model_.training_info()) {
    TRY_STATUS(CheckGraph(training.initialization()));
    TRY_STATUS(CheckGraph(training.algorithm()));
  }
  for (const auto& function : model_.functions()) {
    for (const auto& node : function.node()) TRY_STATUS(CheckNode(node));
    for (const auto& attribute : FunctionDefaults(function)) TRY_STATUS(CheckAttribute(attribute));
  }
  if (functions_.empty()) return {};
  for (const auto& [key, overloads] : functions_) TRY_STATUS(ExpandedNodes(key));
  TRY_STATUS(ExpandedNodes(model_.graph().node()));
  return {};
}

uint64_t Checker::external_bytes() const {
  uint64_t sum = 0;
  for (const auto& [location, size] : external_) sum += size;
  return sum;
}

Status Checker::CheckGraph(const pb::GraphProto& graph) {
  for (const auto& tensor : graph.initializer()) TRY_STATUS(CheckTensor(tensor));
  for (const auto& sparse : graph.sparse_initializer()) TRY_STATUS(CheckSparse(sparse));
  for (const auto& node : graph.node()) TRY_STATUS(CheckNode(node));
  return {};
}

Status Checker::CheckNode(const pb::NodeProto& node) {
  const std::string& name = node.name().empty() ? node.op_type() : node.name();
  const bool built_in = std::ranges::find(kBuiltInDomains, node.domain()) != kBuiltInDomains.end();
  if (!built_in && !functions_.contains({node.domain(), node.op_type()})) {
    return Refuse(
        "node", name,
        fmt::format(
            "uses the operator {} of the domain \"{}\", which is no part of ONNX; libraries of custom "
            "operators are not loaded",
            Shown(node.op_type()), Shown(node.domain())));
  }
  if (std::ranges::find(kLoadingOperators, node.op_type()) != kLoadingOperators.end()) {
    return Refuse("node", name,
                  fmt::format("uses {}, which loads code from outside the model", node.op_type()));
  }
  for (const auto& attribute : node.attribute()) TRY_STATUS(CheckAttribute(attribute));
  return {};
}

// All fields are looked at, whatever the attribute says its type is.
Status Checker::CheckAttribute(const pb::AttributeProto& attribute) {
  if (attribute.has_t()) TRY_STATUS(CheckTensor(attribute.t()));
  for (const auto& tensor : attribute.tensors()) TRY_STATUS(CheckTensor(tensor));
  if (attribute.has_sparse_tensor()) TRY_STATUS(CheckSparse(attribute.sparse_tensor()));
  for (const auto& sparse : attribute.sparse_tensors()) TRY_STATUS(CheckSparse(sparse));
  if (attribute.has_g()) TRY_STATUS(CheckGraph(attribute.g()));
  for (const auto& graph : attribute.graphs()) TRY_STATUS(CheckGraph(graph));
  return {};
}

Status Checker::CheckSparse(const pb::SparseTensorProto& sparse) {
  if (!Product({sparse.dims().begin(), sparse.dims().end()})) return BadDimensions(sparse.values().name());
  TRY_STATUS(CheckTensor(sparse.values()));
  return CheckTensor(sparse.indices());
}

Status Checker::CheckTensor(const pb::TensorProto& tensor) {
  const std::optional<int64_t> elements = Product({tensor.dims().begin(), tensor.dims().end()});
  if (!elements) return BadDimensions(tensor.name());
  if (tensor.external_data_size() > 0 || tensor.data_location() == pb::TensorProto::EXTERNAL)
    return CheckExternal(tensor);
  const std::optional<int64_t> bits = ElementBits(tensor.data_type());
  if (tensor.has_raw_data() && bits) {
    const __int128 bytes = (static_cast<__int128>(*elements) * *bits + 7) / 8;
    if (bytes != static_cast<__int128>(tensor.raw_data().size())) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("tensor \"{}\" holds {} bytes, its shape wants another number",
                              Shown(tensor.name()), tensor.raw_data().size()));
    }
  }
  return {};
}

Status Checker::CheckExternal(const pb::TensorProto& tensor) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : tensor.external_data()) {
    if (!entries.emplace(entry.key(), entry.value()).second) {
      return Refuse("tensor", tensor.name(),
                    fmt::format("gives \"{}\" of its external data twice", Shown(entry.key())));
    }
  }
  const uint64_t size = TRY(FileSize(tensor.name(), entries["location"]));
  const std::optional<uint64_t> offset =
      entries.contains("offset") ? ParseCount(entries["offset"]) : uint64_t{0};
  if (!offset || *offset > size)
    return Refuse("tensor", tensor.name(), "begins after the end of its external data");
  const std::optional<uint64_t> length =
      entries.contains("length") ? ParseCount(entries["length"]) : size - *offset;
  if (!length || *length > size - *offset)
    return Refuse("tensor", tensor.name(), "ends after the end of its external data");

  const std::optional<int64_t> bits = ElementBits(tensor.data_type());
  const __int128 elements = *Product({tensor.dims().begin(), tensor.dims().end()});
  if (bits && (elements * *bits + 7) / 8 > static_cast<__int128>(*length)) {
    return Refuse("tensor", tensor.name(), "is larger than its external data");
  }
  return {};
}

bool Checker::LeadsOut(const std::string& link) const {
  std::error_code error;
  const fs::path target = fs::canonical(link, error), own = fs::canonical(places_.folder, error);
  const auto is_below = [&](const fs::path& root) {
    const fs::path relative = target.lexically_relative(root);
    return !relative.empty() && *relative.begin() != "..";
  };
  return error || (!is_below(own) && std::ranges::none_of(places_.roots, is_below));
}

// Walks from the model's folder to the file, so that no step leaves, by ".." or by a link.
Result<uint64_t> Checker::FileSize(const std::string& tensor, const std::string& location) {
  if (const auto known = external_.find(location); known != external_.end()) return known->second;
  const std::string where = fmt::format("has its data in \"{}\", ", Shown(location));
  if (places_.folder.empty()) return Refuse("tensor", tensor, where + "but this model has no folder");
  if (location.empty()) return Refuse("tensor", tensor, "has external data without a location");
  if (location.find('\0') != std::string::npos)
    return Refuse("tensor", tensor, where + "which holds a zero byte");
  if (location.find(kMemoryAddressMark) != std::string::npos) {
    return Refuse("tensor", tensor, where + "which stands for an address in memory");
  }
  if (location.front() == '/')
    return Refuse("tensor", tensor, where + "an absolute path; it must lie in the model's folder");

  std::string path = places_.folder;
  struct stat status{};
  status.st_mode = S_IFDIR;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string step = location.substr(begin, end - begin);
    begin = end + 1;
    if (step.empty() || step == ".") continue;
    if (step == "..") return Refuse("tensor", tensor, where + "which leaves the model's folder");
    if (!S_ISDIR(status.st_mode)) return Refuse("tensor", tensor, where + "which passes through a file");
    path += "/" + step;
    if (lstat(path.c_str(), &status) != 0) {
      return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG
                 ? Refuse("tensor", tensor, where + "which is not there")
                 : FailErrno(path, errno);
    }
    if (!S_ISLNK(status.st_mode)) continue;
    if (stat(path.c_str(), &status) != 0) return Refuse("tensor", tensor, where + "which is not there");
    if (LeadsOut(path)) {
      return Refuse("tensor", tensor,
                    where +
                        "which is, or passes through, a link out of the model's folder: --allow-link names "
                        "folders that links may lead to");
    }
  }
  if (!S_ISREG(status.st_mode)) return Refuse("tensor", tensor, where + "which is not a regular file");
  return external_[location] = static_cast<uint64_t>(status.st_size);
}

Result<int64_t> Checker::ExpandedNodes(const FunctionKey& key) {
  if (const auto known = expanded_.find(key); known != expanded_.end()) {
    if (!known->second) return Refuse("function", key.second, "calls itself");
    return *known->second;
  }
  if (open_ >= kMaxOpenFunctions)
    return Refuse("function", key.second, "is one of more than 32 within each other");
  expanded_[key] = std::nullopt;
  ++open_;
  int64_t nodes = 0;
  for (const auto* overload : functions_.at(key)) nodes += TRY(ExpandedNodes(overload->node()));
  --open_;
  expanded_[key] = nodes;
  return nodes;
}

Result<int64_t> Checker::ExpandedNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes) {
  int64_t sum = 0;
  for (const auto& node : nodes) {
    const FunctionKey key{node.domain(), node.op_type()};
    sum += 1 + (functions_.contains(key) ? TRY(ExpandedNodes(key)) : 0);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) sum += TRY(ExpandedNodes(attribute.g().node()));
      for (const auto& graph : attribute.graphs()) sum += TRY(ExpandedNodes(graph.node()));
    }
    if (sum > kMaxExpandedNodes)
      return Refuse("model", "", "grows past 10 million nodes when its functions are written out");
  }
  return sum;
}

}  // namespace

Result<uint64_t> CheckSafe(const pb::ModelProto& model, const Places& places) {
  Checker checker(model, places);
  TRY_STATUS(checker.CheckModel());
  return checker.external_bytes();
}

}  // namespace weir::onnx
