// Deliberate defects, to test the tests: each ring must find those that are its own (docs/testing.md).
//
// They exist only where TURNSTILE_PLANTS is defined: in the copies of the libraries that test/model and
// test/simulation link. Everywhere else `planted()` is a constant, and nothing of them is compiled.
#pragma once

#include <cstdint>
#include <string_view>

namespace turnstile {

// X(name, what goes wrong)
#define TURNSTILE_ALL_PLANTS(X) X(queue_is_lifo, "the waiter who came last is granted first")

enum class Plant : uint8_t {
  none,
#define TURNSTILE_PLANT(name, what) name,
  TURNSTILE_ALL_PLANTS(TURNSTILE_PLANT)
#undef TURNSTILE_PLANT
};

struct PlantText {
  Plant plant;
  std::string_view name, what;
};
inline constexpr PlantText kPlants[] = {
#define TURNSTILE_PLANT(name, what) {Plant::name, #name, what},
    TURNSTILE_ALL_PLANTS(TURNSTILE_PLANT)
#undef TURNSTILE_PLANT
};

#ifdef TURNSTILE_PLANTS
inline constinit Plant the_plant = Plant::none;  // which one is there now
inline bool planted(Plant plant) { return the_plant == plant; }
#else
constexpr bool planted(Plant) { return false; }
#endif

}  // namespace turnstile
