// pull_once URL RESOURCE [NODE]: pretends to pull, and says what happened.
#include <cstdio>

#include "pull_once.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: pull_once URL RESOURCE [NODE]\n");
    return 2;
  }
  turnstile::ClientSettings settings;
  settings.servers = {argv[1]};
  if (argc > 3) settings.node_id = argv[3];
  auto client = turnstile::LockClient::create(settings);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().message.c_str());
    return 2;
  }
  std::string why;
  const auto fetch = [](turnstile::Hold& hold) {
    hold.report_progress(1, 1);
    return std::string();
  };
  switch (pull_once(*client, argv[2], fetch, why)) {
    case Pulled::ran:
      std::puts("ran");
      return 0;
    case Pulled::skipped:
      std::puts("skipped");
      return 0;
    case Pulled::took_over:
      std::puts("took over");
      return 0;
    case Pulled::failed:
      break;
  }
  std::fprintf(stderr, "failed: %s\n", why.c_str());
  return 1;
}
