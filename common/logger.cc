#include "common/logger.h"

namespace etalon {

namespace {

void AppendJsonString(std::string* out, std::string_view text) {
  out->push_back('"');
  for (char c : text) {
    switch (c) {
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          *out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out->push_back(c);
        }
    }
  }
  out->push_back('"');
}

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

}  // namespace

std::string FormatLogLine(LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields) {
  std::string out = "{\"level\":\"";
  out += LevelName(level);
  out += "\",\"event\":";
  AppendJsonString(&out, event);
  for (const LogField& field : fields) {
    out.push_back(',');
    AppendJsonString(&out, field.name);
    out.push_back(':');
    AppendJsonString(&out, field.value);
  }
  out.push_back('}');
  return out;
}

}  // namespace etalon
