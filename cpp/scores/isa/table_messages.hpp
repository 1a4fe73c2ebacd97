// The loops of table_messages_isa.cpp, one set per instruction set.
#pragma once

namespace maxmargin::MAXMARGIN_ISA {

void max_plus_of_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out);
void max_plus_in_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out);

}  // namespace maxmargin::MAXMARGIN_ISA
