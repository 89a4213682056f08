#include "onnx/structure.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/work.h"

namespace weir::onnx {
namespace {

constexpr size_t kMaxVertices = 200'000;   // beyond this a graph is not followed
constexpr int64_t kMaxSteps = 20'000'000;  // of all walks through modules
constexpr int kDeepestModule = 8;  // weight layers; a longer way around is a skip over several modules

// A node that works on data, or an input of the graph. Vertex 0 stands before all inputs.
struct Vertex {
  const Node* node = nullptr;
  std::vector<int> before;
  std::vector<int> after;
  int depth = 0;  // weight layers up to and with this one
  bool is_weight_layer = false;
  bool is_depthwise = false;
};

struct Module {
  int fork = 0;
  int join = 0;
  std::set<std::string_view> kind;  // the operators in it
};

class Walker {
 public:
  explicit Walker(Net& net) : net_(net) {}
  Structure Walk();

 private:
  void MakeVertices();
  void FindDominators();
  int Ancestor(int a, int b) const;
  bool IsJoin(int vertex) const;
  bool FeedsOnly(int join, const std::vector<bool>& joins) const;
  bool WalkModule(Module& module);
  static int64_t Periods(const std::vector<Module>& modules);

  Net& net_;
  std::vector<Vertex> vertices_;
  std::vector<int> level_;                  // in the tree of dominators
  std::vector<std::array<int, 18>> above_;  // dominators 1, 2, 4 ... levels up
  std::vector<int> seen_;                   // by vertex: the last module that a walk met it in
  std::vector<bool> in_module_;             // depthwise convolutions of a module
  int64_t steps_ = 0;
};

void Walker::MakeVertices() {
  std::vector<int> maker(net_.values.size(), -1);
  vertices_.emplace_back();
  const auto connect = [&](int before, int after) {
    vertices_[before].after.push_back(after);
    vertices_[after].before.push_back(before);
  };
  for (const int input : net_.inputs) {
    maker[input] = static_cast<int>(vertices_.size());
    vertices_.emplace_back();
    connect(0, maker[input]);
  }
  for (const Node& node : net_.nodes) {
    if (node.in_control_flow || vertices_.size() > kMaxVertices) continue;
    const bool is_data = std::ranges::any_of(
        node.outputs, [&](int id) { return id >= 0 && net_.values[id].origin == Origin::kData; });
    if (!is_data) continue;
    const int id = static_cast<int>(vertices_.size());
    vertices_.push_back({.node = &node,
                         .is_weight_layer = IsWeightLayer(net_, node),
                         .is_depthwise = IsDepthwise(net_, node)});
    std::set<int> before;
    for (const auto* list : {&node.inputs, &node.captured}) {
      for (const int value : *list) {
        if (value >= 0 && maker[value] >= 0) before.insert(maker[value]);
      }
    }
    if (before.empty()) before.insert(0);
    for (const int from : before) {
      connect(from, id);
      vertices_[id].depth = std::max(vertices_[id].depth, vertices_[from].depth);
    }
    vertices_[id].depth += vertices_[id].is_weight_layer ? 1 : 0;
    for (const int output : node.outputs) {
      if (output >= 0 && net_.values[output].origin == Origin::kData) maker[output] = id;
    }
  }
}

// Vertices are in topological order, so one pass finds the nearest vertex that every path passes: the nearest
// common ancestor, in the tree so far, of those before.
void Walker::FindDominators() {
  level_.assign(vertices_.size(), 0);
  above_.resize(vertices_.size());
  above_[0].fill(0);
  for (int v = 1; v < std::ssize(vertices_); ++v) {
    int dominator = vertices_[v].before.front();
    for (const int other : vertices_[v].before) dominator = Ancestor(dominator, other);
    level_[v] = level_[dominator] + 1;
    above_[v][0] = dominator;
    for (size_t k = 1; k < above_[v].size(); ++k) above_[v][k] = above_[above_[v][k - 1]][k - 1];
  }
}

int Walker::Ancestor(int a, int b) const {
  if (level_[a] < level_[b]) std::swap(a, b);
  for (size_t k = above_[a].size(); k-- > 0;) {
    if (level_[a] - (1 << k) >= level_[b]) a = above_[a][k];
  }
  if (a == b) return a;
  for (size_t k = above_[a].size(); k-- > 0;) {
    if (above_[a][k] != above_[b][k]) {
      a = above_[a][k];
      b = above_[b][k];
    }
  }
  return above_[a][0];
}

bool Walker::IsJoin(int vertex) const {
  static const std::set<std::string_view> names = {"Add", "Sum", "Concat", "QLinearAdd", "QLinearConcat"};
  const Vertex& v = vertices_[vertex];
  if (v.node == nullptr || v.before.size() < 2 || !names.contains(v.node->proto->op_type())) return false;
  const int fork = above_[vertex][0];
  return fork != 0 && v.depth > vertices_[fork].depth;
}

// Whether all that the join makes goes, through operators without weights, into one other join.
bool Walker::FeedsOnly(int join, const std::vector<bool>& joins) const {
  for (int v = join; vertices_[v].after.size() == 1;) {
    v = vertices_[v].after.front();
    if (vertices_[v].is_weight_layer) return false;
    if (joins[v]) return true;
  }
  return false;
}

// Visits what lies between fork and join; false when the limit of steps is reached.
bool Walker::WalkModule(Module& module) {
  const bool is_short = vertices_[module.join].depth - vertices_[module.fork].depth <= kDeepestModule;
  std::vector<int> open = {module.join};
  while (!open.empty()) {
    const int v = open.back();
    open.pop_back();
    if (++steps_ > kMaxSteps) return false;
    if (v == module.fork || seen_[v] == module.join) continue;
    seen_[v] = module.join;
    module.kind.insert(vertices_[v].node->proto->op_type());
    if (is_short && vertices_[v].is_depthwise) in_module_[v] = true;
    steps_ += std::ssize(vertices_[v].before);
    open.insert(open.end(), vertices_[v].before.begin(), vertices_[v].before.end());
  }
  return true;
}

// How often the shortest sequence of kinds that makes up the whole is repeated; a period over three is
// chance.
int64_t Walker::Periods(const std::vector<Module>& modules) {
  const size_t count = modules.size();
  for (size_t period = 1; period <= 3; ++period) {
    if (count % period != 0 || count < 2 * period) continue;
    bool repeats = true;
    for (size_t i = period; i < count && repeats; ++i) repeats = modules[i].kind == modules[i - period].kind;
    if (repeats) return static_cast<int64_t>(count / period);
  }
  return static_cast<int64_t>(count);
}

Structure Walker::Walk() {
  MakeVertices();
  if (vertices_.size() > kMaxVertices) return {};
  Structure structure{.depth = 0};
  for (const Vertex& v : vertices_) structure.depth = std::max(*structure.depth, int64_t{v.depth});

  FindDominators();
  std::vector<bool> joins(vertices_.size());
  for (int v = 1; v < std::ssize(vertices_); ++v) joins[v] = IsJoin(v);
  seen_.assign(vertices_.size(), 0);
  in_module_.assign(vertices_.size(), false);
  std::vector<Module> modules;
  for (int v = 1; v < std::ssize(vertices_); ++v) {
    if (!joins[v] || FeedsOnly(v, joins)) continue;
    modules.push_back({.fork = above_[v][0], .join = v});
    if (!WalkModule(modules.back())) return structure;
  }
  int64_t alone = 0;
  for (int v = 1; v < std::ssize(vertices_); ++v)
    alone += vertices_[v].is_depthwise && !in_module_[v] ? 1 : 0;
  structure.inner_modules = alone > 0 ? std::ssize(modules) + alone : Periods(modules);
  return structure;
}

}  // namespace

Structure StructureOf(Net& net) {
  if (!net.complete) return {};
  const bool hidden = std::ranges::any_of(
      net.nodes, [&](const Node& node) { return node.in_control_flow && IsWeightLayer(net, node); });
  return hidden ? Structure{} : Walker(net).Walk();
}

}  // namespace weir::onnx
