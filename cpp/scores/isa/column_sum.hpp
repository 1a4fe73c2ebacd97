// The loops of column_sum_isa.cpp, one set per instruction set.
#pragma once

#include "scores/column_sum.hpp"

namespace maxmargin::MAXMARGIN_ISA {

void add_columns(const ColumnSum<float, float>& task);
void add_columns(const ColumnSum<float, double>& task);
void add_columns(const ColumnSum<double, double>& task);

}  // namespace maxmargin::MAXMARGIN_ISA
