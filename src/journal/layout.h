// The names of the files in a journal's directory, and the header that each of them begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace turnstile {

enum class FileKind : uint32_t { log = 1, snapshot = 2 };

inline constexpr size_t kFileHeaderBytes = 32;
// What is written. Version 1, without repeated errors, ended queues and voided outcomes, and version 2,
// without results, are still read.
inline constexpr uint32_t kFormatVersion = 3;
inline constexpr uint32_t kOldestVersion = 1;
inline constexpr const char* kLockName = "LOCK";

// log-00000000000000000001, snapshot-00000000000000000001: by name, files sort in the order of their batches.
std::string file_name(FileKind kind, uint64_t first_batch);
// A snapshot that is still being written; never read.
std::string temporary_name(uint64_t first_batch);

// What a directory holds, each list in ascending order. Names of no known form are left alone.
struct Listing {
  std::vector<uint64_t> logs;
  std::vector<uint64_t> snapshots;
  std::vector<std::string> temporaries;
};
Listing sort_names(const std::vector<std::string>& names);

std::string make_file_header(FileKind kind, uint64_t first_batch);

// What is wrong with a file's header, in words; nothing if it is right.
std::optional<std::string> fault_in_file_header(std::string_view bytes, FileKind kind, uint64_t first_batch);

}  // namespace turnstile
