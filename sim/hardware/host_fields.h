// The fields of a host, as files give them in `host` of a chip or of a cluster. To add a field: a
// member of HostSpec, a row of host_fields.cc, a line of proto/chip.proto, and the code that uses
// it.

#pragma once

#include "sim/fields/field.h"
#include "sim/hardware/hosts.h"

namespace stepsim {

const FieldTable<HostSpec>& host_fields();

}  // namespace stepsim
