// Where the bytes lead from a state.
#include <algorithm>

#include "automaton.h"

namespace dovetail {

namespace {

constexpr uint16_t kSparseRanges = 6;

}  // namespace

void DState::Dense::put(uint8_t low, uint8_t high, DState *state) {
    auto at = std::find(to.begin(), to.end(), state);
    if (at == to.end()) at = to.insert(at, state);
    std::fill(index + low, index + high + 1, static_cast<uint8_t>(at - to.begin()));
}

/// A place among words, perhaps with what may end them there: most of its row is the same at all places. False where it
/// is another state, or where a byte leads to several states.
bool Automaton::expand_place(DState &d) {
    const NfaPlace *place = nullptr;
    std::vector<DState::Range> &row = work_.row;
    row.clear();
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        if (s.kind == Nfa::Place && !place) place = &nfa_.places[s.a];
        else if (s.kind == Nfa::Range) row.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), closed(s.a)});
        else return false;
    }
    if (!place) return false;
    const uint8_t lead = nfa_.tries[place->trie].lead;
    if (place->escape != kNone) row.push_back({lead, lead, closed(place->escape)});
    const DState::Dense &common = place_row(place->trie);
    for (const DState::Range &r : row)
        if (std::any_of(common.index + r.low, common.index + r.high + 1, [](uint8_t known) { return known != 0; })) return false;
    for (uint32_t i = place->first; i < place->first + place->count; ++i) {
        const NfaFork &fork = nfa_.forks[i];
        if (fork.raw) row.push_back({fork.raw, fork.raw, fork.to == kNone ? nullptr : closed(fork.to)});
    }
    std::sort(row.begin(), row.end(), [](const auto &a, const auto &b) { return a.low < b.low; });
    const auto overlap = [](const auto &a, const auto &b) { return b.low <= a.high; };
    if (std::adjacent_find(row.begin(), row.end(), overlap) != row.end()) return false;
    d.dense = &common;
    if (row.size() <= kSparseRanges) {
        set_row(d, row);
    } else {
        auto dense = std::make_unique<DState::Dense>(common);
        for (const DState::Range &r : row) dense->put(r.low, r.high, r.to);
        own_row(d, std::move(dense));
    }
    d.has_bytes = d.plain = d.expanded = true;
    return true;
}

/// Where the characters lead that leave the words of a trie.
const DState::Dense &Automaton::place_row(uint32_t trie) {
    if (rows_.size() < nfa_.tries.size()) rows_.resize(nfa_.tries.size());
    if (!rows_[trie]) {
        rows_[trie] = std::make_unique<DState::Dense>();
        DState::Dense &row = *rows_[trie];
        row.to.push_back(nullptr);
        if (nfa_.tries[trie].tail != kNone)
            for (const ByteEdge &e : nfa_.tries[trie].plain) row.put(e.low, e.high, closed(e.to));
        account(sizeof(DState::Dense) + row.to.size() * sizeof(DState *));
    }
    return *rows_[trie];
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
    if (rows_.size() < nfa_.tries.size()) rows_.resize(nfa_.tries.size());
    d.dense = row.get();
    rows_.push_back(std::move(row));
}

void Automaton::set_row(DState &d, std::span<const DState::Range> row) {
    d.ranges = static_cast<uint16_t>(row.size());
    d.row = heap_.copy(row).data();
    account(row.size() * sizeof(DState::Range));
}

}  // namespace dovetail
