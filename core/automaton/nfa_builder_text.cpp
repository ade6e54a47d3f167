// The automaton of free text: UTF-8, without the excluded strings, up to the first stop.
#include <bitset>
#include <functional>
#include <map>
#include <tuple>

#include "automaton/nfa_builder.h"
#include "base/string_set.h"

namespace dovetail {

namespace {

constexpr uint32_t kMaxTextStates = 1u << 18;

/// The stops as a trie without failure links: which partial stops are under way is kept as a set of its nodes.
class StopTrie {
  public:
    explicit StopTrie(const std::vector<std::string_view> &stops) : nodes_(1) {
        for (uint32_t i = 0; i < stops.size(); ++i) {
            uint32_t at = 0;
            for (const char c : stops[i]) {
                const auto b = static_cast<uint8_t>(c);
                const auto [it, fresh] = nodes_[at].kids.try_emplace(b, static_cast<uint32_t>(nodes_.size()));
                const uint32_t to = it->second;
                if (fresh) {
                    nodes_.emplace_back();
                    nodes_.back().depth = nodes_[at].depth + 1;
                }
                at = to;
            }
            nodes_[at].stop = i;
        }
    }

    uint32_t child(uint32_t node, uint8_t byte) const {
        const auto it = nodes_[node].kids.find(byte);
        return it == nodes_[node].kids.end() ? 0 : it->second;
    }
    uint32_t depth(uint32_t node) const { return nodes_[node].depth; }
    uint32_t stop(uint32_t node) const { return nodes_[node].stop; }
    template <class Set> void telling_bytes(uint32_t node, Set &out) const {
        for (const auto &[b, to] : nodes_[node].kids) out.set(b);
    }

  private:
    struct Node {
        std::map<uint8_t, uint32_t> kids;
        uint32_t depth = 0;
        uint32_t stop = kNone;
    };
    std::vector<Node> nodes_;
};

/// Where a reader of free text can be: `text` is the place in the excluded strings, kNone once no stop can begin any
/// more; `stops` are the partial stops under way, `barred` those that began where the text may not end, before there
/// were enough characters or after there were too many; `over` says that there are too many, so that one of the stops
/// must go on; `utf8` is the place inside a character.
struct Place {
    uint32_t text = 0;
    std::vector<uint32_t> stops, barred;
    bool over = false;
    uint8_t utf8 = 0;

    auto operator<=>(const Place &) const = default;
    bool is_text() const { return text != kNone && !over; }
    bool dead() const { return !is_text() && stops.empty(); }
};

/// What the next character may be: while more are needed it begins no stop, and when none is left it is part of one.
enum class Next { Any, NoStop, OnlyStop };

/// There would be dead ends if a stop that comes in time could be cut short by one that came too early, or if the text
/// could not go on until there is enough of it.
void check_lower_bound(const Ast::Lists &lists) {
    const StringSet all(lists.stops);
    std::bitset<256> used;
    for (std::string_view s : lists.stops) {
        uint32_t at = 0;
        for (size_t i = 1; i < s.size() && !all.hit(at); ++i) at = all.next(at, static_cast<uint8_t>(s[i]));
        if (at != 0) throw InputError("where characters are needed, no stop may begin inside another");
    }
    for (const std::vector<std::string_view> &words : {lists.names, lists.stops})
        for (std::string_view s : words)
            for (const char c : s) used.set(static_cast<uint8_t>(c));
    for (size_t b = 0; b < 128; ++b)
        if (!used[b]) return;
    throw InputError("where characters are needed, one of ASCII must be free of stops and excluded strings");
}

class TextBuilder {
  public:
    TextBuilder(NfaBuilder &out, const Vocab &vocab, uint32_t flags, const Ast::Lists &lists)
        : out_(out), vocab_(vocab), flags_(flags), lists_(lists), excludes_(lists.names), stops_(lists.stops) {}

    uint32_t build() {
        for (std::string_view s : lists_.stops)
            for (size_t i = 0; i < s.size(); ++i) vocab_.specials_at(s, i, specials_);
        std::sort(specials_.begin(), specials_.end());
        specials_.erase(std::unique(specials_.begin(), specials_.end()), specials_.end());
        const uint32_t start = state(flags_ & kTextNone ? Place{kNone, {0}, {}} : Place{});
        while (!pending_.empty()) {
            const auto [place, self] = std::move(pending_.back());
            pending_.pop_back();
            fill(place, self);
        }
        return start;
    }

  private:
    uint32_t state(const Place &place) {
        const auto [it, fresh] = made_.try_emplace(place, 0);
        if (fresh) {
            if (made_.size() > kMaxTextStates) throw LimitError("free text needs more than 262,144 states");
            it->second = out_.reserve_split();
            pending_.emplace_back(place, it->second);
        }
        return it->second;
    }

    Place step(const Place &p, uint8_t b, Next next) const {
        Place to;
        to.utf8 = utf8_next(p.utf8, b);
        to.text = kNone;
        if (to.utf8 == kUtf8Bad) return to;
        to.over = p.over || next == Next::OnlyStop;
        if (p.text != kNone) {
            to.text = excludes_.next(p.text, b);
            if (excludes_.hit(to.text)) to.text = kNone;
        }
        auto advance = [&](uint32_t node, std::vector<uint32_t> &out) {
            const uint32_t child = stops_.child(node, b);
            if (child) out.push_back(child);
        };
        for (uint32_t s : p.stops) advance(s, to.stops);
        for (uint32_t s : p.barred) advance(s, to.barred);
        if (p.text != kNone) advance(0, p.over || next == Next::NoStop ? to.barred : to.stops);
        commit(to);
        return to;
    }

    /// A complete stop ends the text; only a longer stop that began where it began may still go on.
    void commit(Place &p) const {
        const auto whole = [&](uint32_t s) { return stops_.stop(s) != kNone; };
        if (std::any_of(p.stops.begin(), p.stops.end(), whole) || std::any_of(p.barred.begin(), p.barred.end(), whole)) {
            p.text = kNone;
            std::erase_if(p.stops, std::not_fn(whole));
        }
        if (p.text == kNone) {
            p.barred.clear();
            p.over = false;
        }
        std::sort(p.stops.begin(), p.stops.end());
        std::sort(p.barred.begin(), p.barred.end());
    }

    void fill(const Place &p, uint32_t self) {
        std::vector<uint32_t> ways;
        for (uint32_t s : p.stops)
            if (stops_.stop(s) != kNone) ways.push_back(out_.accept(stops_.stop(s) + 1));
        const bool between = p.is_text() && p.utf8 == 0;  // characters
        if (between && (flags_ & kTextMayEnd)) ways.push_back(with_enough(out_.accept(0)));
        if (between && (flags_ & (kTextCountsChars | kTextNeedsChars))) counted_edges(p, ways);
        else ways.push_back(byte_edges(p, Next::Any));
        if (p.utf8 == 0) special_edges(p, ways);
        out_.fill_split(self, ways);
    }

    uint32_t guarded(Nfa::Kind kind, uint32_t to, uint32_t b = 0) { return to == kDead ? kDead : out_.add(kind, to, b); }
    uint32_t with_enough(uint32_t to) { return flags_ & kTextNeedsChars ? guarded(Nfa::Leave, to) : to; }

    /// Counting characters happens at their first byte, so a tick guards every step from a boundary.
    void counted_edges(const Place &p, std::vector<uint32_t> &ways) {
        const bool needs = flags_ & kTextNeedsChars;
        const auto counted = [&](Next next) { return guarded(Nfa::Tick, byte_edges(p, next), needs ? 0 : 1); };
        ways.push_back(with_enough(counted(Next::Any)));
        if (needs) ways.push_back(guarded(Nfa::Short, counted(Next::NoStop)));
        if (flags_ & kTextCountsChars) ways.push_back(guarded(Nfa::Full, byte_edges(p, Next::OnlyStop)));
    }

    uint32_t byte_edges(const Place &p, Next next) {
        std::bitset<256> telling;
        for (uint32_t s : p.stops) stops_.telling_bytes(s, telling);
        for (uint32_t s : p.barred) stops_.telling_bytes(s, telling);
        if (p.text != kNone) {
            stops_.telling_bytes(0, telling);
            excludes_.telling_bytes(p.text, telling);
        }
        std::vector<ByteEdge> edges;
        auto push = [&](uint8_t b, uint32_t to) {
            if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == b) edges.back().high = b;
            else edges.push_back({b, b, to});
        };
        uint32_t text_states[kUtf8Bad];  // by the UTF-8 state that a byte without meaning leads to
        std::fill(std::begin(text_states), std::end(text_states), kNone);
        for (int i = 0; i < 256; ++i) {
            const auto b = static_cast<uint8_t>(i);
            const uint8_t utf8 = utf8_next(p.utf8, b);
            if (utf8 == kUtf8Bad) continue;
            if (telling[b]) {
                const Place to = step(p, b, next);
                if (!to.dead()) push(b, state(to));
            } else if (p.is_text() && next != Next::OnlyStop) {
                if (text_states[utf8] == kNone) text_states[utf8] = state(Place{0, {}, {}, false, utf8});
                push(b, text_states[utf8]);
            }
        }
        return out_.bytes(edges);
    }

    /// A special token may stand for its text where that text lies wholly inside a stop.
    void special_edges(const Place &p, std::vector<uint32_t> &ways) {
        for (uint32_t id : specials_) {
            const std::string_view text = vocab_.bytes(id);
            Place to = p;
            for (size_t i = 0; i < text.size() && !to.dead(); ++i) to = step(to, static_cast<uint8_t>(text[i]), Next::Any);
            if (to.utf8 == kUtf8Bad) continue;
            to.over = true;
            const auto began_before = [&](uint32_t s) { return stops_.depth(s) >= text.size(); };
            const auto inside = std::partition(to.stops.begin(), to.stops.end(), began_before);
            to.barred.insert(to.barred.end(), inside, to.stops.end());
            to.stops.erase(inside, to.stops.end());
            commit(to);
            if (to.dead()) continue;
            const uint32_t way = out_.token({false, {id}}, state(to));
            ways.push_back(p.is_text() ? with_enough(way) : way);
        }
    }

    NfaBuilder &out_;
    const Vocab &vocab_;
    const uint32_t flags_;
    const Ast::Lists &lists_;
    StringSet excludes_;
    StopTrie stops_;
    std::vector<uint32_t> specials_;
    std::map<Place, uint32_t> made_;
    std::vector<std::pair<Place, uint32_t>> pending_;
};

}  // namespace

void check_text(const Ast &ast) {
    const Ast::Node &root = ast.nodes[ast.root];
    if (root.op != Code::Text) return;
    const uint32_t flags = root.slot;
    const Ast::Lists &lists = ast.lists(root);
    const auto is_empty = [](std::string_view s) { return s.empty(); };
    if (std::any_of(lists.names.begin(), lists.names.end(), is_empty)) throw InputError("free text cannot exclude the empty string");
    if (flags & (kTextCountsChars | kTextNeedsChars))
        for (std::string_view s : lists.stops)
            if (!s.empty() && utf8_next(0, static_cast<uint8_t>(s[0])) == kUtf8Bad)
                throw InputError("where characters are counted, a stop begins with a whole one");
    if (!(flags & kTextNeedsChars)) return;
    if (flags & kTextCountsTokens) throw InputError("free text counts tokens or needs characters, not both");
    check_lower_bound(lists);
}

uint32_t NfaBuilder::free_text(const Ast::Node &node, const Ast::Lists &lists) {
    return TextBuilder(*this, vocab_, node.slot, lists).build();
}

}  // namespace dovetail
