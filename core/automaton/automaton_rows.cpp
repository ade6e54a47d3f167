// Where the bytes lead from a state.
#include <algorithm>

#include "automaton/automaton.h"

namespace dovetail {

namespace {

constexpr uint16_t kSparseRanges = 6;

}  // namespace

void DState::Dense::put(uint8_t low, uint8_t high, DState *state) {
    auto at = std::find(to.begin(), to.end(), state);
    if (at == to.end()) at = to.insert(at, state);
    std::fill(index + low, index + high + 1, static_cast<uint8_t>(at - to.begin()));
}

void Automaton::expand_row(DState &d, std::vector<ByteEdge> &edges) {
    std::vector<DState::Range> &ranges = work_.row;
    ranges.clear();
    auto push = [&](uint8_t low, uint8_t high, DState *to) {
        if (!to) return;
        if (!ranges.empty() && ranges.back().to == to && ranges.back().high + 1 == low) ranges.back().high = high;
        else ranges.push_back({low, high, to});
    };
    std::sort(edges.begin(), edges.end(), [](const ByteEdge &a, const ByteEdge &b) { return a.low < b.low; });
    const auto overlap = [](const ByteEdge &a, const ByteEdge &b) { return b.low <= a.high; };
    if (std::adjacent_find(edges.begin(), edges.end(), overlap) == edges.end()) {
        for (const ByteEdge &e : edges) push(e.low, e.high, closed(e.to));
        return store_row(d, ranges);
    }
    // Cut at every border, then gather the targets of each piece.
    std::vector<uint16_t> &cuts = work_.cuts;
    cuts.clear();
    for (const ByteEdge &e : edges) {
        cuts.push_back(e.low);
        cuts.push_back(static_cast<uint16_t>(e.high + 1));
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<ByteEdge> &active = work_.active;
    active.clear();
    size_t next = 0;
    std::vector<uint32_t> &targets = work_.targets, &last_targets = work_.last_targets;
    DState *last = nullptr;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        std::erase_if(active, [&](const ByteEdge &e) { return e.high < cuts[i]; });
        while (next < edges.size() && edges[next].low == cuts[i]) active.push_back(edges[next++]);
        if (active.empty()) continue;
        targets.clear();
        for (const ByteEdge &e : active) targets.push_back(e.to);
        std::sort(targets.begin(), targets.end());
        targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
        if (!last || targets != last_targets) last = closed(targets);
        last_targets = targets;
        push(static_cast<uint8_t>(cuts[i]), static_cast<uint8_t>(cuts[i + 1] - 1), last);
    }
    store_row(d, ranges);
}

void Automaton::store_row(DState &d, const std::vector<DState::Range> &ranges) {
    if (ranges.size() > kSparseRanges) {
        auto dense = std::make_unique<DState::Dense>();
        dense->to.push_back(nullptr);
        bool fits = true;
        for (const DState::Range &r : ranges) {
            dense->put(r.low, r.high, r.to);
            fits = fits && dense->to.size() <= 256;
        }
        if (fits) return own_row(d, std::move(dense));
    }
    set_row(d, ranges);
}

void Automaton::own_row(DState &d, std::unique_ptr<DState::Dense> row) {
    account(sizeof(DState::Dense) + row->to.size() * sizeof(DState *));
    d.dense = row.get();
    rows_.push_back(std::move(row));
}

void Automaton::set_row(DState &d, std::span<const DState::Range> row) {
    d.ranges = static_cast<uint16_t>(row.size());
    d.row = heap_.copy(row).data();
    account(row.size() * sizeof(DState::Range));
}

}  // namespace dovetail
