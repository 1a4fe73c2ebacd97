// A kernel product as Python holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "scores/kernel_product.hpp"
#include "scores/row_columns.hpp"

// A product in float32 or float64.
struct AnyProduct {
    std::variant<maxmargin::KernelProduct<float>, maxmargin::KernelProduct<double>> product;

    template <class Scalar>
    static maxmargin::KernelProduct<Scalar> make(const maxmargin::Features& rows, const maxmargin::Features* points, const maxmargin::KernelFunction& function, const double* centre, double cache_bytes,
                                      std::span<const int32_t> codes, std::span<const double> distances2, int64_t n_codes, double negligible) {
        auto own = std::make_shared<const maxmargin::KernelPoints<Scalar>>(rows, function, centre);
        auto other = points ? std::make_shared<const maxmargin::KernelPoints<Scalar>>(*points, function, centre) : own;
        maxmargin::RepeatedParts<Scalar> parts;
        if (!codes.empty()) {
            parts.codes.assign(codes.begin(), codes.end());
            parts.codes.resize((codes.size() + maxmargin::panel_rows - 1) / maxmargin::panel_rows * maxmargin::panel_rows, 0);
            parts.n_codes = n_codes;
            // exp(−γ d²) = 2^(−γ d² / log 2)
            for (const double distance2 : distances2) parts.exponents.push_back(static_cast<Scalar>(-function.gamma * 1.4426950408889634074 * distance2));
        }
        return {std::move(own), std::move(other), function, cache_bytes, std::move(parts), negligible};
    }
    template <class Use>
    auto visit(Use&& use) {
        return std::visit(use, product);
    }
    int64_t n_rows() {
        return visit([](auto& of) { return of.n_rows(); });
    }
    // Its columns, for solvers that move one row after the other; the product outlives them.
    std::shared_ptr<maxmargin::RowColumns> columns_of(std::vector<double> diagonal, double constant, maxmargin::Workers workers) {
        return visit([&]<class Scalar>(maxmargin::KernelProduct<Scalar>& of) -> std::shared_ptr<maxmargin::RowColumns> {
            return std::make_shared<maxmargin::KernelColumns<Scalar>>(of, std::move(diagonal), constant, std::move(workers));
        });
    }
};
