// Each function fills the module with the classes of one part of the core.
#pragma once

#include <nanobind/nanobind.h>

void bind_interrupts(nanobind::module_& module);
void bind_qp(nanobind::module_& module);
void bind_files(nanobind::module_& module);
void bind_structures(nanobind::module_& module);
void bind_spaces(nanobind::module_& module);
void bind_solvers(nanobind::module_& module);
void bind_proximal_step(nanobind::module_& module);
void bind_dual_choice(nanobind::module_& module);
void bind_frank_wolfe(nanobind::module_& module);
void bind_online(nanobind::module_& module);
void bind_kernels(nanobind::module_& module);
void bind_graphs(nanobind::module_& module);
void bind_message_passing(nanobind::module_& module);
void bind_inference_cuts(nanobind::module_& module);
