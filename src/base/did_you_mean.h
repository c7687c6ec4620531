// For errors about a word that nobody knows: which one was meant, perhaps. Server and command line say it
// alike.
#pragma once

#include <string>
#include <vector>

namespace turnstile {

// "; did you mean x?", if one of the words is near enough that it may be a slip; else nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& words);

}  // namespace turnstile
