// The loops of box_qp_isa.cpp, one set per instruction set.
#pragma once

#include "qp/box_qp.hpp"

namespace maxmargin::MAXMARGIN_ISA {

BoxSteps solve_box(const BoxQp& qp);
BoxGap value_box(const BoxRows& rows);

}  // namespace maxmargin::MAXMARGIN_ISA
