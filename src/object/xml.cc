#include "object/xml.h"

#include <expat.h>
#include <fmt/format.h>

#include <memory>

namespace weir::object {
namespace {

constexpr size_t kDeepest = 16, kLongestPath = 256;

struct Reader {
  XML_Parser parser = nullptr;
  std::vector<XmlText> texts;
  std::vector<size_t> path_ends;  // where the path of each open element's parent ends
  std::string path, text;
  bool is_leaf = false;
  const char* fault = nullptr;

  void Stop(const char* why) {
    fault = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

void Begin(void* data, const XML_Char* name, const XML_Char**) {
  Reader& reader = *static_cast<Reader*>(data);
  if (reader.fault != nullptr) return;  // the parser may go on to the element's end
  if (reader.path_ends.size() >= kDeepest) return reader.Stop("elements nested too deep");
  reader.path_ends.push_back(reader.path.size());
  if (!reader.path.empty()) reader.path += '/';
  const std::string_view whole = name;
  if (reader.path.size() + whole.size() > kLongestPath) return reader.Stop("a name that is too long");
  reader.path += whole.substr(whole.rfind(':') + 1);
  reader.text.clear();
  reader.is_leaf = true;
}

void End(void* data, const XML_Char*) {
  Reader& reader = *static_cast<Reader*>(data);
  if (reader.fault != nullptr) return;
  if (reader.is_leaf && reader.texts.size() >= kMostXmlTexts) return reader.Stop("too many elements");
  if (reader.is_leaf) reader.texts.emplace_back(reader.path, std::move(reader.text));
  reader.text.clear();
  reader.is_leaf = false;
  reader.path.resize(reader.path_ends.back());
  reader.path_ends.pop_back();
}

void Take(void* data, const XML_Char* text, int size) {
  static_cast<Reader*>(data)->text.append(text, static_cast<size_t>(size));
}

void RefuseDoctype(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  static_cast<Reader*>(data)->Stop("a document type");
}

}  // namespace

Result<std::vector<XmlText>> ParseXml(std::string_view document) {
  if (document.size() > kMostXmlBytes)
    return Fail(ErrorCode::kCorrupt, fmt::format("not the XML of S3: more than {} MiB", kMostXmlBytes >> 20));
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate(nullptr),
                                                                       XML_ParserFree);
  if (parser == nullptr) return Fail(ErrorCode::kOverloaded, "no memory to read XML");
  Reader reader{.parser = parser.get()};
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), Begin, End);
  XML_SetCharacterDataHandler(parser.get(), Take);
  XML_SetStartDoctypeDeclHandler(parser.get(), RefuseDoctype);
  if (XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()), XML_TRUE) !=
      XML_STATUS_OK) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("not the XML of S3: {} in line {}",
                            reader.fault ? reader.fault : XML_ErrorString(XML_GetErrorCode(parser.get())),
                            XML_GetCurrentLineNumber(parser.get())));
  }
  return std::move(reader.texts);
}

std::string FindText(const std::vector<XmlText>& texts, std::string_view path) {
  for (const auto& [name, text] : texts) {
    if (name == path) return text;
  }
  return "";
}

}  // namespace weir::object
