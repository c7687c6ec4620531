// What a program writes to those who started it: results to stdout, messages to stderr. A disk may be full,
// the reader of a pipe gone, a descriptor closed: fmt::print throws then, and would end a program whose work
// is done. Nothing here does.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace turnstile {

// To be called before anything is opened. One of descriptors 0, 1 and 2 that is closed would be given to the
// next file or connection, and what is written to stderr would stand in that. It is filled with one that
// refuses as a closed one does, and that commands which we start do not get.
void fill_standard_descriptors() noexcept;

// To stderr, at once. What cannot be written is lost: there is nobody left who could be told.
void write_error(std::string_view text) noexcept;

template <typename... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  write_error(fmt::format(format, std::forward<Values>(values)...));
}

// To stdout, which is buffered. After what could not be written nothing more is: a gap might not be noticed.
// Threads: any.
void write_output(std::string_view text) noexcept;

template <typename... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

// Whether all that was written has arrived, for who goes on and must know; and for whoever reads the other
// end of a pipe.
bool flush_output() noexcept;

// The same at the end: 0, or errno of what went wrong, once: who gets it is to say it.
int take_output_fault() noexcept;

// The exit code of a program that has written its output and would end with `code`. If not all of it has
// arrived, and nobody has taken that fault, it is 1, and `say` is called with a sentence about it. But when
// the reader has gone (`| head`) it has what it wanted: then it is what a shell shows of a program that
// SIGPIPE has ended, as it does where it is not ignored, and nothing is said.
int exit_after_output(int code, const std::function<void(const std::string&)>& say);

}  // namespace turnstile
