// The file journal over any Directory, for tests that bring a disk of their own. Others use
// open_file_journal().
#pragma once

#include <memory>

#include "journal/file.h"
#include "journal/journal.h"

namespace turnstile {

std::unique_ptr<Journal> make_file_journal(std::unique_ptr<Directory> directory,
                                           const FileJournalOptions& options);

}  // namespace turnstile
