// Which of the compiled kernels run. Apart from kernels.hpp, which the files of isa/ include: the standard library's inline
// functions must not be compiled there.
#pragma once

#include <string>
#include <vector>

namespace maxmargin {

// Those this CPU can run, the fastest first: it is used unless another is chosen.
std::vector<std::string> instruction_sets();

// For comparing them. Throws std::invalid_argument for a name that instruction_sets() does not give.
void use_instruction_set(const std::string& name);

}  // namespace maxmargin
