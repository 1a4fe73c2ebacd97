// What kernel_values_isa.cpp gives to kernels_isa.cpp, once per instruction set.
#pragma once

#include "scores/kernel_function.hpp"

namespace maxmargin::MAXMARGIN_ISA {

void kernel_values(const KernelTask<float>& task);
void kernel_values(const KernelTask<double>& task);
void kernel_values(const SparseKernelTask<float>& task);
void kernel_values(const SparseKernelTask<double>& task);
void add_panel(const PanelSum<float>& task);
void add_panel(const PanelSum<double>& task);
void add_panel(const MirroredSum<float>& task);
void add_panel(const MirroredSum<double>& task);
void box_bounds(const BoxTask<float>& task);
void box_bounds(const BoxTask<double>& task);

}  // namespace maxmargin::MAXMARGIN_ISA
