// What libFuzzer calls. The same for all targets, so that each of them is only its property.
#include "base/log.h"
#include "support.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  turnstile::set_log(turnstile::LogLevel::off, turnstile::LogFormat::text);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  turnstile::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
