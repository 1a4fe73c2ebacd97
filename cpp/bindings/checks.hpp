// What a call from Python must hold before the core, which trusts its arguments, is given it. All throw ValueError.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

inline void require(bool holds, const std::string& otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

inline void require_length(const char* name, size_t found, int64_t expected) {
    require(static_cast<int64_t>(found) == expected,
            std::string(name) + " has " + std::to_string(found) + " entries, expected " + std::to_string(expected) + ".");
}

inline void require_between(const char* name, int64_t found, int64_t low, int64_t high) {
    require(low <= found && found <= high, std::string(name) + " is " + std::to_string(found) + ", expected " +
                                               std::to_string(low) + " … " + std::to_string(high) + ".");
}

// Every number is one of n things.
template <class Integer>
void require_numbers_of(const char* thing, std::span<const Integer> numbers, int64_t n) {
    for (size_t k = 0; k < numbers.size(); ++k)
        if (numbers[k] < 0 || numbers[k] >= n)
            throw std::invalid_argument(std::string(thing) + " " + std::to_string(numbers[k]) + " at place " + std::to_string(k) +
                                        " is out of range: expected 0 … " + std::to_string(n - 1) + ".");
}

// Losses, weights and budgets: finite and not negative.
inline void require_amounts(const char* name, std::span<const double> amounts) {
    for (const double amount : amounts)
        if (!(std::isfinite(amount) && amount >= 0.0)) throw std::invalid_argument(std::string(name) + " must hold finite numbers ≥ 0.");
}
