#include "load/inputs/input_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "load/inputs/input_values.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::ModelInfo;
using infer::Shape;
using infer::TensorInfo;
using infer::ToString;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

constexpr const char* kChecks = "validation_data";

// A tensor of the model as the files know it.
struct Slot {
  TensorInfo info;
  Shape row;             // without the batch dimension; free ones -1
  Shape usual;           // where the step says none: as `row`, or as --shape has it
  bool checked = false;  // an output
};

std::string Kind(const Slot& slot) {
  return fmt::format("{} \"{}\"", slot.checked ? "output" : "input", slot.info.name);
}

std::string Names(const std::vector<Slot>& slots) {
  std::string names;
  for (const Slot& slot : slots) names += (names.empty() ? "" : ", ") + slot.info.name;
  return names;
}

// The values of one tensor for one row.
struct Value {
  Shape shape;
  Bytes data;
};

// One tensor through all steps.
struct Column {
  Slot slot;
  std::vector<Value> values;
};

// ---- Shapes

// `row` with its free dimension, where it is the only one, as `elements` make it.
Shape FollowFrom(int64_t elements, Shape row) {
  const auto free = std::ranges::find_if(row, [](int64_t dimension) { return dimension < 0; });
  if (free == row.end()) return row;
  Shape others(row.begin(), free);
  others.insert(others.end(), free + 1, row.end());
  const auto product = infer::ElementCount(others);  // an error where another is free
  if (product && *product > 0 && elements % *product == 0) *free = elements / *product;
  return row;
}

Result<Value> MakeValue(const Slot& slot, Bytes data, const std::optional<Shape>& given) {
  const int64_t elements = TRY(CountElements(data, slot.info.dtype));
  // A server tells the shape of an output that nobody knows as [-1].
  const bool is_open = slot.info.any_rank || (slot.checked && slot.row == Shape{-1});
  Shape shape = !given    ? FollowFrom(elements, slot.usual)
                : is_open ? *given
                          : TRY(FitShape(slot.row, *given));
  if (std::ranges::any_of(shape, [](int64_t dimension) { return dimension < 0; })) {
    return Invalid(
        fmt::format("{} values do not tell the free dimensions of {}: say {}", elements, ToString(shape),
                    slot.checked ? std::string("\"shape\"")
                                 : fmt::format("\"shape\", or --shape {}:{} with a number for each",
                                               slot.info.name, fmt::join(shape, ","))));
  }
  const int64_t wanted = TRY(infer::ElementCount(shape));
  if (elements != wanted) {
    return Invalid(fmt::format("{} values where shape {} takes {}: give as many as one row has", elements,
                               ToString(shape), wanted));
  }
  return Value{std::move(shape), std::move(data)};
}

Result<Shape> ReadShape(const Json& json) {
  if (!json.is_array()) return Invalid("\"shape\" is no list of numbers");
  Shape shape;
  for (const Json& dimension : json) {
    const auto size = ReadSize(dimension);
    if (!size) return Invalid("\"shape\" has an element that is no size: give numbers from 0 on");
    shape.push_back(*size);
  }
  return shape;
}

Result<Value> ReadValue(const Slot& slot, const Json& json) {
  std::optional<Shape> shape;
  const Json* content = &json;
  if (json.is_object()) {
    if (const auto found = json.find("shape"); found != json.end()) shape = TRY(ReadShape(*found));
    if (const auto found = json.find("content"); found != json.end()) content = &*found;
  }
  if (content->is_array()) return MakeValue(slot, TRY(ReadList(*content, slot.info.dtype)), shape);
  if (content->is_object() && content->contains("b64"))
    return MakeValue(slot, TRY(ReadBase64((*content)["b64"])), shape);
  return Invalid(
      "holds no values: give a list, {\"content\": [...], \"shape\": [...]} or {\"b64\": \"...\"}");
}

// ---- Steps

struct Step {
  std::string where;  // behind the name of the list: "[3]", "[1][0]"
  const Json* tensors = nullptr;
};

Result<std::vector<Step>> ListSteps(const Json& file, const char* key) {
  const auto list = file.find(key);
  if (list == file.end() || !list->is_array())
    return Invalid(fmt::format("has no list \"{0}\": give {{\"{0}\": [{{\"TENSOR\": [...]}}, ...]}}", key));
  std::vector<Step> steps;
  const auto add = [&](std::string where, const Json& json) -> Status {
    if (!json.is_object())
      return Invalid(fmt::format("{}{} is no step: give {{\"TENSOR\": [...], ...}}", key, where));
    steps.push_back({std::move(where), &json});
    return {};
  };
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    if (item.is_array()) {
      for (size_t k = 0; k < item.size(); ++k) TRY_STATUS(add(fmt::format("[{}][{}]", i, k), item[k]));
    } else {
      TRY_STATUS(add(fmt::format("[{}]", i), item));
    }
  }
  return steps;
}

Result<Column> ReadColumn(const Slot& slot, const std::vector<Step>& steps, const char* key) {
  Column column{.slot = slot, .values = {}};
  for (const Step& step : steps) {
    const std::string where = fmt::format("{}{}: {}", key, step.where, Kind(slot));
    const auto found = step.tensors->find(slot.info.name);
    if (found == step.tensors->end())
      return Invalid(where + (slot.checked ? " is missing: every step must say it, or none"
                                           : " is missing: every step must say every input"));
    column.values.push_back(TRY_CONTEXT(ReadValue(slot, *found), where));
  }
  return column;
}

// A column for every slot that a step says, and for every input.
Result<std::vector<Column>> ReadColumns(const std::vector<Slot>& slots, const std::vector<Step>& steps,
                                        const char* key) {
  for (const Step& step : steps) {
    for (const auto& [name, value] : step.tensors->items()) {
      if (std::ranges::none_of(slots, [&](const Slot& slot) { return slot.info.name == name; }))
        return Invalid(fmt::format("{}{}: the model has no \"{}\" there, it has: {}", key, step.where, name,
                                   Names(slots)));
    }
  }
  std::vector<Column> columns;
  for (const Slot& slot : slots) {
    const auto says = [&](const Step& step) { return step.tensors->contains(slot.info.name); };
    if ((slot.checked || slot.info.optional) && std::ranges::none_of(steps, says)) continue;
    columns.push_back(TRY(ReadColumn(slot, steps, key)));
  }
  return columns;
}

Result<std::vector<Slot>> InputSlots(const ModelInfo& model, const RequestOptions& options) {
  TRY_STATUS(CheckRequestOptions(model, options));
  std::vector<Slot> slots;
  for (const TensorInfo& info : model.inputs) {
    Slot slot{.info = info};
    slot.row = TRY_CONTEXT(RowShape(model, info), Kind(slot));
    const auto given = options.shapes.find(info.name);
    slot.usual = given == options.shapes.end() ? slot.row
                 : info.any_rank               ? given->second
                                 : TRY_CONTEXT(FitShape(slot.row, given->second), "--shape " + info.name);
    slots.push_back(std::move(slot));
  }
  return slots;
}

Result<std::vector<Slot>> OutputSlots(const ModelInfo& model) {
  std::vector<Slot> slots;
  for (const TensorInfo& info : model.outputs) {
    Slot slot{.info = info, .checked = true};
    slot.row = TRY_CONTEXT(RowShape(model, info), Kind(slot));
    slot.usual = slot.row;
    slots.push_back(std::move(slot));
  }
  return slots;
}

// ---- Requests

// The shapes of the rows that each request joins, which must be one.
Result<std::vector<Shape>> JoinedShapes(const Column& column, int batch) {
  const size_t count = column.values.size(), each = static_cast<size_t>(batch);
  std::vector<Shape> shapes;
  for (size_t k = 0; k < count / std::gcd(count, each); ++k) {
    const size_t first = k * each % count;
    shapes.push_back(column.values[first].shape);
    for (size_t i = 1; i < std::min(each, count); ++i) {
      const Shape& other = column.values[(first + i) % count].shape;
      if (other == shapes.back()) continue;
      return Invalid(fmt::format(
          "{}: steps {} and {} have shapes {} and {}, which cannot go into one batch: "
          "give steps of one shape, or a batch of 1",
          Kind(column.slot), first, (first + i) % count, ToString(shapes.back()), ToString(other)));
    }
  }
  return shapes;
}

// The tensor of each request.
Result<std::vector<infer::Tensor>> JoinColumn(const ModelInfo& model, Column column, int batch) {
  const std::vector<Shape> shapes = TRY(JoinedShapes(column, batch));
  std::vector<Bytes> rows;
  for (Value& value : column.values) rows.push_back(std::move(value.data));
  const std::vector<Bytes> joined = JoinRows(std::move(rows), batch);
  std::vector<infer::Tensor> tensors;
  for (size_t k = 0; k < joined.size(); ++k) {
    tensors.push_back({.name = column.slot.info.name,
                       .dtype = column.slot.info.dtype,
                       .shape = RequestShape(model, shapes[k], batch),
                       .data = joined[k]});
  }
  return tensors;
}

// Before any row is repeated to fill a batch.
Status CheckSize(const std::vector<Column>& columns, int batch) {
  int64_t largest = 0;  // no request is larger
  for (const Column& column : columns) {
    size_t row = 0;
    for (const Value& value : column.values) row = std::max(row, value.data.size());
    if (std::cmp_greater(row, kMaxRequestBytes))
      return Invalid(Kind(column.slot) + ": a row of more than 1 GiB");
    largest += static_cast<int64_t>(row);
  }
  if (largest > kMaxRequestBytes / batch)
    return Invalid(fmt::format(
        "{} rows of up to {} bytes are more than 1 GiB a request: make the batch smaller", batch, largest));
  return {};
}

Result<InputData> MakeData(const ModelInfo& model, const std::string& version, const RequestOptions& options,
                           std::vector<Column> inputs, std::vector<Column> outputs) {
  TRY_STATUS(CheckSize(inputs, options.batch));
  TRY_STATUS(CheckSize(outputs, options.batch));
  InputData data;
  for (Column& column : inputs) {
    std::vector<infer::Tensor> tensors = TRY(JoinColumn(model, std::move(column), options.batch));
    data.requests.resize(tensors.size(), StartRequest(model, version, options.outputs));
    for (size_t k = 0; k < tensors.size(); ++k) data.requests[k].inputs.push_back(std::move(tensors[k]));
  }
  for (Column& column : outputs) {
    const std::string& name = column.slot.info.name;
    if (!options.outputs.empty() && std::ranges::find(options.outputs, name) == options.outputs.end())
      return Invalid(
          fmt::format("output \"{}\" is to be checked, but is not among the outputs asked for: "
                      "ask for it too",
                      name));
    std::vector<infer::Tensor> tensors = TRY(JoinColumn(model, std::move(column), options.batch));
    data.expected.resize(tensors.size());
    for (size_t k = 0; k < tensors.size(); ++k) data.expected[k].push_back(std::move(tensors[k]));
  }
  return data;
}

// ---- Folders

Bytes SplitLines(std::string_view text) {
  std::string data;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    data += ToElement(text.substr(0, end)).text();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Bytes::Copy(data);
}

// The names of the files that are not hidden.
Result<std::vector<std::string>> ListFiles(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
  }
  if (error) return FailErrno(folder, error.value());
  std::ranges::sort(names);
  return names;
}

// The tensor's names are a stranger's: only what was listed in the folder is opened.
Result<Column> ReadFileColumn(const std::string& folder, const Slot& slot) {
  const std::string path = folder + "/" + slot.info.name;
  Bytes data = TRY(ReadFile(path, static_cast<uint64_t>(kMaxRequestBytes)));
  if (slot.info.dtype == DType::kBytes) data = SplitLines(data.text());
  Column column{.slot = slot, .values = {}};
  column.values.push_back(TRY_CONTEXT(MakeValue(slot, std::move(data), {}), path));
  return column;
}

// Steps stand in the same lists.
bool Align(const std::vector<Step>& one, const std::vector<Step>& other) {
  return std::ranges::equal(one, other, {}, &Step::where, &Step::where);
}

Result<InputData> ReadSteps(const Json& file, const ModelInfo& model, const std::string& version,
                            const RequestOptions& options) {
  const std::vector<Slot> inputs = TRY(InputSlots(model, options));
  const std::vector<Step> steps = TRY(ListSteps(file, "data"));
  if (steps.empty()) return Invalid("\"data\" has no step: give one at least");
  std::vector<Column> columns = TRY(ReadColumns(inputs, steps, "data"));
  std::vector<Column> checked;
  if (file.contains(kChecks)) {
    const std::vector<Slot> outputs = TRY(OutputSlots(model));
    const std::vector<Step> checks = TRY(ListSteps(file, kChecks));
    if (!Align(steps, checks)) {
      return Invalid(
          fmt::format("\"{}\" has {} steps and \"data\" {}, or in other lists: give one for each, "
                      "in the same lists",
                      kChecks, checks.size(), steps.size()));
    }
    checked = TRY(ReadColumns(outputs, checks, kChecks));
  }
  return MakeData(model, version, options, std::move(columns), std::move(checked));
}

Result<InputData> ReadFiles(const std::string& folder, const ModelInfo& model, const std::string& version,
                            const RequestOptions& options) {
  const std::vector<Slot> inputs = TRY(InputSlots(model, options)), outputs = TRY(OutputSlots(model));
  const std::vector<std::string> files = TRY(ListFiles(folder));
  const auto there = [&](const Slot& slot) {
    return std::ranges::find(files, slot.info.name) != files.end();
  };
  for (const std::string& file : files) {
    const auto named = [&](const Slot& slot) { return slot.info.name == file; };
    if (std::ranges::none_of(inputs, named) && std::ranges::none_of(outputs, named))
      return Invalid(fmt::format("{}/{}: the model has no such input or output, its inputs are: {}", folder,
                                 file, Names(inputs)));
  }
  std::vector<Column> columns, checked;
  for (const Slot& slot : inputs) {
    if (!there(slot))
      return Invalid(fmt::format("{} has no file for {}: put one of that name there, or give a JSON file",
                                 folder, Kind(slot)));
    columns.push_back(TRY(ReadFileColumn(folder, slot)));
  }
  for (const Slot& slot : outputs)
    if (there(slot)) checked.push_back(TRY(ReadFileColumn(folder, slot)));
  return MakeData(model, version, options, std::move(columns), std::move(checked));
}

}  // namespace

Result<InputData> ReadInputData(std::string_view json, const ModelInfo& model, const std::string& version,
                                const RequestOptions& options) {
  const Json file = TRY_CONTEXT(ParseJson(json), "input data");
  return TRY_CONTEXT(ReadSteps(file, model, version, options), "input data");
}

Result<InputData> ReadInputFolder(const std::string& folder, const ModelInfo& model,
                                  const std::string& version, const RequestOptions& options) {
  return TRY_CONTEXT(ReadFiles(folder, model, version, options), "input data");
}

}  // namespace weir::load
