// Several outputs of each example with a high score and loss, for several cuts in one iteration (Guzman-Rivera, Kohli and Batra 2013).
//
// The first is the most violated output. The others are
//
//     diverse   each the best one for score + loss that differs from those before it: see diverse.hpp
//     m-best    those with the next highest score + loss
//     random    the first with places relabelled at random: a place takes part with a given probability, and its new label is drawn
//               by exp(score) from the labels it does not have
#pragma once

#include <cstdint>
#include <vector>

#include "planes/plane_batch.hpp"

namespace maxmargin {

enum class VariantSource { diverse, m_best, random };

struct VariantOptions {
    VariantSource source = VariantSource::diverse;
    // One for each output but the last: strengths of diverse search, or shares of places that are relabelled.
    std::vector<double> strengths;
    uint64_t seed = 0;
};

struct Variants {
    std::vector<PlaneBatch> planes;  // by number of the output: one plane of each example, without those of the truth
    std::vector<double> diversity;   // Σ_i weight of the places where output j + 1 differs from j; of a random one, from the first
    double most = 0.0;               // Σ_i weight of all places
};

}  // namespace maxmargin
