// The fields of a communication library in files. To add one: a member of CommunicationLibrary, a
// row of library_fields.cc, a line of proto/library.proto, and the code that uses it.

#pragma once

#include "sim/collectives/library.h"
#include "sim/fields/field.h"

namespace stepsim {

const FieldTable<CommunicationLibrary>& library_fields();

}  // namespace stepsim
