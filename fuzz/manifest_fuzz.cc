// Any bytes as a manifest: an answer, never a crash; an answer is a spec or errors, never both or
// neither.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "operator/manifest/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using etalon::controller::CheckChange;
  const auto parsed =
      etalon::controller::ParseManifest({reinterpret_cast<const char*>(data), size});
  ETALON_CHECK(parsed.spec.has_value() == parsed.errors.empty(), "a spec or errors");
  if (parsed.spec)
    ETALON_CHECK(CheckChange(*parsed.spec, *parsed.spec).empty(), "no change is no error");
  return 0;
}
