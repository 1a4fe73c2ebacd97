#include "bindings/bindings.hpp"

NB_MODULE(_core, module) {
    module.doc() = "The compiled core of maxmargin. Private: use the package's public names.";
    bind_interrupts(module);
    bind_qp(module);
    bind_files(module);
    bind_structures(module);
    bind_graphs(module);
    bind_spaces(module);
    bind_kernels(module);
    bind_proximal_step(module);
    bind_solvers(module);
    bind_dual_choice(module);
    bind_frank_wolfe(module);
    bind_online(module);
    bind_message_passing(module);
    bind_inference_cuts(module);
}
