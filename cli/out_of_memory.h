// Ends the process in good order when memory runs out.
//
// Mostly std::bad_alloc does that: it reaches main(). It can't where the language or a library lets
// no exception through: in a destructor, in a function that is noexcept, before main(). There
// std::terminate() is called, and says the same from the first instruction of the program on,
// before the libraries are initialised.

#pragma once

namespace stepsim {

// Does what would otherwise take memory when an exception is thrown. Call it before anything may
// run out of memory.
void prepare_for_exceptions();

// Says that memory ran out. Takes none itself.
void print_out_of_memory() noexcept;

}  // namespace stepsim
