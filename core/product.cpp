#include "product.h"

#include <algorithm>

namespace dovetail {

namespace {

constexpr size_t kMaxWork = 400'000;

}  // namespace

Product::Product(Terms &terms, const std::vector<uint32_t> &wanted, const std::vector<uint32_t> &barred, bool split,
                 Exits *exits)
    : terms_(terms), wanted_(wanted.size()), split_(split), exits_(exits) {
    for (const uint32_t pattern : wanted) start_.push_back(settled({terms.term(pattern)}));
    for (const uint32_t pattern : barred) {
        const Set set{terms.term(pattern)};
        empty_ = empty_ || is_universal(set);
        start_.push_back(intern(set));
    }
}

Together Product::run(uint32_t low, uint32_t high, size_t most) {
    Together found;
    found.states.emplace_back();
    if (empty_) return found;
    number({start_, low, high});
    for (size_t at = 0; at < states_.size(); ++at) {
        State state = states_[at];
        Together::State made;
        if (!exits_ || leave(state, made.exits)) {
            made.accepting = may_end(state);
            follow(state, made.edges);
        }
        found.states.resize(std::max(found.states.size(), states_.size()));
        found.states[at] = std::move(made);
        if (states_.size() > most || work_ > kMaxWork)
            throw LimitError("the patterns need too many states together");
    }
    return found;
}

uint32_t Product::number(const State &state) {
    std::u32string key(state.threads.begin(), state.threads.end());
    key.append({state.low, state.high});
    const auto [found, is_new] = state_numbers_.try_emplace(std::move(key), static_cast<uint32_t>(states_.size()));
    if (is_new) states_.push_back(state);
    return found->second;
}

uint32_t Product::intern(Set set) {
    const auto [found, is_new] = set_numbers_.try_emplace(std::move(set), static_cast<uint32_t>(sets_.size()));
    if (is_new) sets_.push_back(found->first);
    return found->second;
}

bool Product::is_universal(const Set &set) {
    return std::any_of(set.begin(), set.end(), [&](uint32_t term) { return terms_.is_universal(term); });
}

bool Product::is_nullable(uint32_t threads) const {
    const Set &set = sets_[threads];
    return std::any_of(set.begin(), set.end(), [&](uint32_t term) { return terms_[term].nullable; });
}

bool Product::may_end(const State &state) const {
    if (state.low) return false;
    for (size_t at = 0; at < state.threads.size(); ++at) {
        const bool barred = at >= wanted_;
        if (state.threads[at] == kSettled ? false : is_nullable(state.threads[at]) == barred) return false;
    }
    return true;
}

/// Notes what may follow where one pattern alone has a say, and takes that out of the state; false if nothing is left.
bool Product::leave(State &state, std::vector<uint32_t> &exits) {
    for (size_t at = wanted_; at < state.threads.size(); ++at)
        if (state.threads[at] != kSettled) return !leave_words(state, exits);
    size_t open = wanted_;
    for (size_t at = 0; at < wanted_; ++at) {
        if (state.threads[at] == kSettled) continue;
        if (open != wanted_) return true;
        open = at;
    }
    if (open == wanted_) {
        exits.push_back(exits_->anything(state.low, state.high));
        return false;
    }
    Set kept;
    const Set threads = sets_[state.threads[open]];
    for (const uint32_t term : threads) {
        if (stuck_.size() <= term) stuck_.resize(term + 1);
        const uint32_t found = stuck_[term] ? Exits::kStuck : exits_->rest(term, state.low, state.high);
        if (found == Exits::kStuck) {
            stuck_[term] = true;
            kept.push_back(term);
        } else if (found != Exits::kNothing) {
            exits.push_back(found);
        }
    }
    if (kept.empty()) return false;
    state.threads[open] = intern(std::move(kept));
    return true;
}

/// The same where nothing is left but that some words are barred.
bool Product::leave_words(const State &state, std::vector<uint32_t> &exits) {
    if (state.low || state.high != kNone) return false;
    uint32_t barred = kSettled;
    for (size_t at = 0; at < state.threads.size(); ++at) {
        if (state.threads[at] == kSettled) continue;
        if (at < wanted_ || barred != kSettled) return false;
        barred = state.threads[at];
    }
    const Set &set = sets_[barred];
    if (set.size() != 1 || terms_[set[0]].rest != Terms::kEnd || !terms_.is_words(set[0])) return false;
    exits.push_back(exits_->other_than(terms_[set[0]].pattern));
    return true;
}

void Product::follow(const State &state, std::vector<Together::Edge> &edges) {
    if (!state.high) return;
    struct Way {
        Symbols symbols;
        std::vector<uint32_t> threads;
    };
    std::vector<Way> ways{{terms_.every(), {}}};
    for (size_t at = 0; at < state.threads.size(); ++at) {
        const std::vector<Cell> &cells = table(state.threads[at], at >= wanted_, split_ && !at);
        work_ += ways.size() * cells.size();
        std::vector<Way> longer;
        for (const Way &way : ways)
            for (const Cell &cell : cells) {
                Symbols both = way.symbols & cell.symbols;
                if (both.empty()) continue;
                longer.push_back({std::move(both), way.threads});
                longer.back().threads.push_back(cell.threads);
            }
        ways = std::move(longer);
    }
    const uint32_t low = state.low ? state.low - 1 : 0, high = state.high == kNone ? kNone : state.high - 1;
    std::unordered_map<uint32_t, size_t> known;  // edges by target
    for (Way &way : ways) {
        const State target{std::move(way.threads), low, high};
        if ((low || high != kNone) && !fits(target)) continue;
        const uint32_t to = number(target);
        const auto [place, is_new] = known.try_emplace(to, edges.size());
        if (is_new) edges.push_back({to, std::move(way.symbols)});
        else edges[place->second].symbols |= way.symbols;
    }
}

/// Whether the limits can still be kept.
bool Product::fits(const State &state) {
    for (size_t at = 0; at < wanted_; ++at) {
        const Set &set = sets_[state.threads[at]];
        const auto reaches = [&](uint32_t term) {
            const Lengths left = terms_.lengths(term);
            return (state.high == kNone || left.fewest <= state.high) && left.most >= state.low;
        };
        if (!set.empty() && std::none_of(set.begin(), set.end(), reaches)) return false;
    }
    return true;
}

/// Where symbols lead: a wanted pattern must go on, a barred one must not come to match whatever follows.
const std::vector<Product::Cell> &Product::table(uint32_t threads, bool barred, bool split) {
    const uint64_t key = uint64_t{threads} << 2 | uint64_t{barred} << 1 | uint64_t{split};
    const auto found = tables_.find(key);
    if (found != tables_.end()) return found->second;
    std::vector<Cell> made;
    if (threads == kSettled) made.push_back({terms_.every(), kSettled});
    else made = split ? split_moves(threads) : moves(threads, barred);
    return tables_.emplace(key, std::move(made)).first->second;
}

std::vector<Product::Cell> Product::split_moves(uint32_t threads) {
    std::vector<Cell> found;
    const Set set = sets_[threads];
    for (const uint32_t term : set)
        for (const Terms::Move &move : terms_.moves(term)) found.push_back({move.symbols, settled({move.target})});
    work_ += found.size();
    return found;
}

std::vector<Product::Cell> Product::moves(uint32_t threads, bool barred) {
    std::vector<Set> targets(terms_.alphabet().symbols.size());  // by symbol
    const Set set = sets_[threads];
    for (const uint32_t term : set)
        for (const Terms::Move &move : terms_.moves(term))
            move.symbols.each([&](size_t symbol) {
                targets[symbol].push_back(move.target);
                ++work_;
            });
    std::vector<Cell> found;
    std::unordered_map<Set, size_t> known;  // sets that are not left out
    for (size_t symbol = 0; symbol < targets.size(); ++symbol) {
        Set &to = targets[symbol];
        std::sort(to.begin(), to.end());
        to.erase(std::unique(to.begin(), to.end()), to.end());
        const auto place = known.find(to);
        if (place != known.end()) {
            found[place->second].symbols.add(symbol);
        } else if (barred ? !is_universal(to) : !to.empty()) {
            known.emplace(to, found.size());
            found.push_back({{}, barred ? intern(std::move(to)) : settled(std::move(to))});
            found.back().symbols.add(symbol);
        }
    }
    return found;
}

}  // namespace dovetail
