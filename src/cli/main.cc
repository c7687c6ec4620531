// turnstile: the command line of a Turnstile server.
#include <cstdio>
#include <exception>

#include "base/standard_streams.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  turnstile::fill_standard_descriptors();
  try {
    return turnstile::cli::run_program({argv + 1, argv + argc});
  } catch (const std::exception& surprise) {
    std::fprintf(stderr, "turnstile: %s\n", surprise.what());  // cannot throw again
    return turnstile::cli::kUnexpected;
  }
}
