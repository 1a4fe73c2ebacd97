#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "qp/budget_qp.hpp"

using namespace nb::literals;
using maxmargin::BudgetQP;
using maxmargin::QPResult;

namespace {

nb::ndarray<nb::numpy, double> copy_to_numpy(std::span<const double> numbers) {
    return to_numpy(std::vector<double>(numbers.begin(), numbers.end()));
}

void add_plane(BudgetQP& qp, double c, const Array1<double>& gram_row,
               const std::optional<Array1<double>>& at_nonnegative) {
    qp.add(c, as_span(gram_row), at_nonnegative ? as_span(*at_nonnegative) : std::span<const double>{});
}

void remove_planes(BudgetQP& qp, const Array1<std::int64_t>& indices) {
    std::vector<std::size_t> planes;
    for (const std::int64_t index : as_span(indices)) {
        if (index < 0) {
            throw std::invalid_argument("indices contain " + std::to_string(index) +
                                        ": planes are counted from 0, from the front only.");
        }
        planes.push_back(static_cast<std::size_t>(index));
    }
    qp.remove(planes);
}

}  // namespace

void bind_qp(nb::module_& module) {
    nb::class_<QPResult>(module, "QPResult", "What one solve of a BudgetQP reached.")
        .def_ro("gap", &QPResult::gap, "Duality gap of the QP, in units of its objective.")
        .def_ro("dual", &QPResult::dual)
        .def_ro("steps", &QPResult::steps);

    nb::class_<BudgetQP>(module, "BudgetQP", R"(The dual of the 1-slack problem over the cuts found so far.

    max  Σ α_k c_k − ½‖Σ α_k g_k + Σ μ_j e_j‖²    subject to  α ≥ 0, Σ α_k ≤ budget, μ ≥ 0

over the products g_k·g_l alone; the μ_j keep chosen coordinates of w non-negative. Arrays returned are copies.)")
        .def(nb::init<double, std::size_t>(), "budget"_a, "n_nonnegative"_a = 0)
        .def("__len__", &BudgetQP::size)
        .def("add", &add_plane, "c"_a, "gram_row"_a, "at_nonnegative"_a = nb::none(),
             "Append a plane with α = 0: its products with the planes held, its square last, and its entries at the "
             "non-negative coordinates.")
        .def("remove", &remove_planes, "indices"_a, "Drop the planes with these ascending indices.")
        .def(
            "solve",
            [](BudgetQP& qp, double tolerance, std::int64_t max_steps) {
                return interruptible([&] { return qp.solve(tolerance, max_steps); });
            },
            "tolerance"_a, "max_steps"_a = 1'000'000,
             "Ascend from the present α until the gap is at most `tolerance`.")
        .def_prop_rw("budget", &BudgetQP::budget, &BudgetQP::set_budget, "A smaller one scales α down to fit.")
        .def_prop_rw("alpha", [](const BudgetQP& qp) { return copy_to_numpy(qp.alpha()); },
                     [](BudgetQP& qp, const Array1<double>& alpha) { qp.set_alpha(as_span(alpha)); }, nb::rv_policy::move,
                     "Setting it starts the next solve there: any α ≥ 0 with Σα ≤ budget.")
        .def_prop_ro("mu", [](const BudgetQP& qp) { return copy_to_numpy(qp.mu()); }, nb::rv_policy::move)
        .def_prop_ro("values", [](const BudgetQP& qp) { return copy_to_numpy(qp.values()); }, nb::rv_policy::move,
                     "F_k = c_k − w·g_k for each plane.")
        .def_prop_ro(
            "gram",
            [](const BudgetQP& qp) {
                const std::size_t n = qp.size();
                std::vector<double> products;
                products.reserve(n * n);
                for (std::size_t k = 0; k < n; ++k) {
                    const std::span<const double> row = qp.products(k);
                    products.insert(products.end(), row.begin(), row.end());
                }
                return to_numpy(std::move(products), {n, n});
            },
            nb::rv_policy::move, "Products of all planes with each other.")
        .def_prop_ro("slack", &BudgetQP::slack, "ξ = max(0, max F_k).")
        .def_prop_ro("dual", &BudgetQP::dual)
        .def_prop_ro("gap", &BudgetQP::gap);
}
