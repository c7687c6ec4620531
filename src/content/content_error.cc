// From errno to the classes that containerd understands.
#include "content/content_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace turnstile::content {
namespace {

ErrorClass class_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorClass::not_found;
    case EEXIST:
      return ErrorClass::already_exists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorClass::resource_exhausted;
    default:
      return ErrorClass::internal;
  }
}

const char* explain(int error_number) {
  // openat2 says ELOOP for a symbolic link and EXDEV for a way out of the directory: neither belongs in a
  // store.
  if (error_number == ELOOP || error_number == EXDEV) return "a link in the store is not followed";
  if (error_number == ENOSYS) return "this kernel has no openat2 (Linux 5.6 or later is needed)";
  return std::strerror(error_number);
}

}  // namespace

std::unexpected<ContentError> fail_errno(std::string_view what, std::string_view name, int error_number) {
  return fail(class_of(error_number), fmt::format("{} {}: {}", what, name, explain(error_number)));
}

}  // namespace turnstile::content
