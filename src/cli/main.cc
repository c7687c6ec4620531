// turnstile: the command line of a Turnstile server.
#include <exception>

#include "cli/program.h"

int main(int argc, char** argv) {
  try {
    return turnstile::cli::run_program({argv + 1, argv + argc});
  } catch (const std::exception& surprise) {
    return turnstile::cli::report(turnstile::cli::Output::text, surprise.what(), "unexpected",
                                  turnstile::cli::kUnexpected);
  }
}
