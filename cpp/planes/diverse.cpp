#include "planes/diverse.hpp"

#include <algorithm>

#include "threads/parallel.hpp"

namespace maxmargin {

std::vector<std::vector<int32_t>> diverse_outputs(const Structure& structure, int64_t example, PartScores<double> scores, Search kind,
                                                  std::span<const double> strengths, bool are_rough) {
    const std::vector<double> given(scores.node, scores.node + structure.rows(example).length() * scores.stride);
    std::vector<double> lowered = given;
    SearchMemory<double> memory;
    std::vector<std::vector<int32_t>> codes;
    for (size_t m = 0; m <= strengths.size(); ++m) {
        heartbeat();
        // Searches may write to the scores.
        std::copy(lowered.begin(), lowered.end(), scores.node);
        std::vector<int32_t>& code = codes.emplace_back(structure.code_length(example));
        structure.search(example, scores, kind, memory, code.data());
        scores.same_table = true;
        scores.is_rough = are_rough;
        if (m == strengths.size()) break;
        for (size_t t = 0; t < code.size(); ++t) {
            const auto place = static_cast<int64_t>(t);
            lowered[structure.score_place(example, place, code[t], scores.stride)] -= strengths[m] * structure.place_weight(example, place);
        }
    }
    std::copy(given.begin(), given.end(), scores.node);
    return codes;
}

}  // namespace maxmargin
