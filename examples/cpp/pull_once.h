// Fetch something once in the whole cluster.
#pragma once

#include <turnstile/lock_client.h>

#include <functional>
#include <string>

enum class Pulled {
  ran,        // by this node
  skipped,    // another node had done it, or did it while this one waited
  took_over,  // by this node, after another one had failed
  failed,     // `why` says what went wrong
};

// `fetch` does the work, and returns why it failed or an empty text.
Pulled pull_once(turnstile::LockClient& client, const std::string& resource,
                 const std::function<std::string(turnstile::Hold&)>& fetch, std::string& why);
