#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "onnx/rules.h"
#include "onnx/shapes.h"

namespace weir::onnx {
namespace {

Dims Matrix(const Op& op, size_t input, std::string_view transposed) {
  Dims dims = op.InputDims(input);
  if (dims && dims->size() == 2 && op.Int(transposed, 0) != 0) std::swap((*dims)[0], (*dims)[1]);
  return dims && dims->size() == 2 ? dims : std::nullopt;
}

void GemmOf(Op& op, size_t second) {
  const Dims a = Matrix(op, 0, "transA"), b = Matrix(op, second, "transB");
  if (a && b) op.SetDims(0, Sizes{(*a)[0], (*b)[1]});
}
void Gemm(Op& op) { GemmOf(op, 1); }
void QuantizedGemm(Op& op) { GemmOf(op, 3); }

void MatMulOf(Op& op, size_t second) {
  Dims a = op.InputDims(0), b = op.InputDims(second);
  if (!a || !b || a->empty() || b->empty()) return;
  const bool a_is_vector = a->size() == 1, b_is_vector = b->size() == 1;
  if (a_is_vector) a->insert(a->begin(), 1);
  if (b_is_vector) b->push_back(1);
  if (op.Int("transA", 0) != 0 && !a_is_vector) std::swap(a->back(), (*a)[a->size() - 2]);
  if (op.Int("transB", 0) != 0 && !b_is_vector) std::swap(b->back(), (*b)[b->size() - 2]);
  if (op.Int("transBatchA", 0) != 0 || op.Int("transBatchB", 0) != 0) return;
  Dims dims = Broadcast(Sizes(a->begin(), a->end() - 2), Sizes(b->begin(), b->end() - 2));
  if (!a_is_vector) dims->push_back((*a)[a->size() - 2]);
  if (!b_is_vector) dims->push_back(b->back());
  op.SetDims(0, dims);
}
void MatMul(Op& op) { MatMulOf(op, 1); }
void QuantizedMatMul(Op& op) { MatMulOf(op, 3); }
void IntegerMatMul(Op& op) {
  MatMulOf(op, 1);
  op.SetType(0, pb::TensorProto::INT32);
}

// LSTM, GRU, RNN: W is [directions, gates * hidden, input], R [directions, gates * hidden, hidden].
void Recurrent(Op& op) {
  const Dims data = op.InputDims(0), weight = op.InputDims(1), recurrence = op.InputDims(2);
  if (!data || data->size() != 3 || !weight || weight->size() != 3 || !recurrence || recurrence->size() != 3)
    return;
  const int64_t directions = weight->front(), hidden = recurrence->back();
  const bool batch_first = op.Int("layout", 0) != 0;
  const int64_t batch = (*data)[batch_first ? 0 : 1], steps = (*data)[batch_first ? 1 : 0];
  op.SetDims(0,
             batch_first ? Sizes{batch, steps, directions, hidden} : Sizes{steps, directions, batch, hidden});
  for (const size_t i : {1, 2}) {
    op.SetDims(i, batch_first ? Sizes{batch, directions, hidden} : Sizes{directions, batch, hidden});
  }
}

void Einsum(Op& op) {
  const std::string equation = op.Text("equation", "");
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return;
  const auto sizes = EinsumSizes(op);
  if (!sizes) return;
  Sizes dims;
  for (const char letter : equation.substr(arrow + 2)) {
    if (letter == ' ') continue;
    const auto size = sizes->find(letter);
    if (size == sizes->end()) return;
    dims.push_back(size->second);
  }
  op.SetDims(0, dims);
}

}  // namespace

std::optional<std::map<char, int64_t>> EinsumSizes(const Op& op) {
  const std::string equation = op.Text("equation", "");
  const std::string terms = equation.substr(0, equation.find("->"));
  std::map<char, int64_t> sizes;
  size_t begin = 0;
  for (size_t i = 0; i < op.inputs(); ++i) {
    if (begin > terms.size()) return std::nullopt;
    const size_t end = std::min(terms.find(',', begin), terms.size());
    std::string term = terms.substr(begin, end - begin);
    std::erase(term, ' ');
    const Dims dims = op.InputDims(i);
    if (!dims || dims->size() != term.size()) return std::nullopt;  // an ellipsis, too
    for (size_t d = 0; d < term.size(); ++d) {
      int64_t& size = sizes.emplace(term[d], kUnknownDim).first->second;
      size = std::max(size, (*dims)[d]);
    }
    begin = end + 1;
  }
  return sizes;
}

void AddMatrixRules(RuleTable& table) {
  table.Add(Gemm, {"FusedGemm", "Gemm"});
  table.Add(QuantizedGemm, {"QGemm"});
  table.Add(MatMul, {"FusedMatMul", "MatMul"});
  table.Add(QuantizedMatMul, {"QLinearMatMul"});
  table.Add(IntegerMatMul, {"MatMulInteger"});
  table.Add(Recurrent, {"GRU", "LSTM", "RNN"});
  table.Add(Einsum, {"Einsum"});
}

}  // namespace weir::onnx
