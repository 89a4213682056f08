// Text to values and back. nlohmann's parser reads (it gives events, so what it builds here is ours, and is
// counted while it is built) and its shortest form of numbers is written. Nothing else includes it: it is
// slow to compile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/utf8.h"

namespace weir {

// Builds a value from the parser's events. Returns false from one to stop it.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonReader(const JsonLimits& limits) : limits_(limits) {}

  Json TakeRoot() { return std::move(root_); }
  const Status& status() const { return status_; }

  bool null() override { return Put(Json()) != nullptr; }
  bool boolean(bool truth) override { return Put(Json(truth)) != nullptr; }
  bool number_integer(int64_t number) override { return Put(Json(number)) != nullptr; }
  bool number_unsigned(uint64_t number) override { return Put(Json(number)) != nullptr; }
  bool number_float(double number, const std::string&) override { return Put(Json(number)) != nullptr; }
  bool string(std::string& text) override { return Put(Json(std::move(text))) != nullptr; }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    status_ = error.id == 406
                  ? Refuse(fmt::format("not JSON: a number out of range before byte {}", position))
                  : Refuse(fmt::format("not JSON: byte {}", position));
    return false;
  }

 private:
  static Status Refuse(std::string message) { return Fail(ErrorCode::kCorrupt, std::move(message)); }

  // Returns the place in the open array or object; nullptr beyond the limit. It stays where it is while it is
  // the innermost that is open, since nothing is put beside it then.
  Json* Put(Json value) {
    if (++values_ > limits_.values) {
      status_ = Refuse(fmt::format("JSON has more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& place = parent[key_];
    place = std::move(value);
    return &place;
  }

  bool Open(Json value) {
    if (std::ssize(open_) >= limits_.depth) {
      status_ = Refuse(fmt::format("JSON is nested deeper than {}", limits_.depth));
      return false;
    }
    Json* place = Put(std::move(value));
    if (place != nullptr) open_.push_back(place);
    return place != nullptr;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  size_t values_ = 0;
  Status status_;
};

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("JSON of {} bytes, more than {}", text.size(), limits.bytes));
  JsonReader reader(limits);
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  if (!reader.status()) return std::unexpected(reader.status().error());
  if (!whole) return Fail(ErrorCode::kCorrupt, "not JSON");
  return reader.TakeRoot();
}

namespace {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  std::string Take() { return std::move(out_); }

  void Write(const Json& json, int depth) {
    if (json.is_object()) {
      WriteList('{', '}', json, depth, [&](Json::const_iterator at) {
        WriteText(at.key());
        out_ += indent_ > 0 ? ": " : ":";
        Write(*at, depth + 1);
      });
    } else if (json.is_array()) {
      WriteList('[', ']', json, depth, [&](Json::const_iterator at) { Write(*at, depth + 1); });
    } else {
      WriteScalar(json);
    }
  }

 private:
  template <typename WriteOne>
  void WriteList(char open, char close, const Json& json, int depth, WriteOne write_one) {
    out_ += open;
    for (auto at = json.begin(); at != json.end(); ++at) {
      if (at != json.begin()) out_ += ',';
      BreakLine(depth + 1);
      write_one(at);
    }
    if (!json.empty()) BreakLine(depth);
    out_ += close;
  }

  void BreakLine(int depth) {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(depth * indent_), ' ');
  }

  void WriteScalar(const Json& json) {
    if (json.is_null())
      out_ += "null";
    else if (json.is_boolean())
      out_ += json.get<bool>() ? "true" : "false";
    else if (json.is_string())
      WriteText(json.get_ref<const std::string&>());
    else if (json.is_number_unsigned())
      fmt::format_to(std::back_inserter(out_), "{}", json.get<uint64_t>());
    else if (json.is_number_integer())
      fmt::format_to(std::back_inserter(out_), "{}", json.get<int64_t>());
    else
      WriteNumber(json.get<double>());
  }

  void WriteNumber(double number) {
    if (!std::isfinite(number)) {
      out_ += "null";
      return;
    }
    char digits[64];
    out_.append(digits, nlohmann::detail::to_chars(digits, digits + sizeof(digits), number));
  }

  void WriteText(const std::string& text) {
    if (!IsUtf8(text)) {
      out_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return;
    }
    out_ += '"';
    for (const char c : text) WriteCharacter(c);
    out_ += '"';
  }

  void WriteCharacter(char c) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kShort = "\"\\bfnrt";
    if (const size_t at = kSpecial.find(c); at != std::string_view::npos) {
      out_ += '\\';
      out_ += kShort[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<int>(c));
    } else {
      out_ += c;
    }
  }

  const int indent_;
  std::string out_;
};

std::string Dump(const Json& json, int indent) {
  JsonWriter writer(indent);
  writer.Write(json, 0);
  return writer.Take();
}

}  // namespace

std::string DumpJson(const Json& json) { return Dump(json, 0); }
std::string DumpJsonIndented(const Json& json) { return Dump(json, 2); }
std::ostream& operator<<(std::ostream& out, const Json& json) { return out << DumpJson(json); }

}  // namespace weir
