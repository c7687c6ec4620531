// The file journal over any Directory, for tests that bring a disk of their own. Others use
// open_file_journal().
#pragma once

#include <functional>
#include <memory>

#include "journal/file.h"
#include "journal/journal.h"

namespace turnstile {

// `by_hand`: the journal has no thread, and writes what is pending only when this is called (false: there was
// nothing, or a write has failed), when a snapshot needs it, and when it stops. It must not outlive the
// journal.
std::unique_ptr<Journal> make_file_journal(std::unique_ptr<Directory> directory,
                                           const FileJournalOptions& options,
                                           std::function<bool()>* by_hand = nullptr);

}  // namespace turnstile
