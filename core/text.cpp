// The automaton of free text: UTF-8, without the excluded strings, up to the first stop.
#include <bitset>
#include <map>
#include <tuple>

#include "nfa_builder.h"
#include "string_set.h"

namespace dovetail {

namespace {

constexpr uint32_t kMaxTextStates = 1u << 18;

/// The stops as a plain trie: which partial stops are under way is kept as a set of its nodes.
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

/// Where a reader of free text can be: `text` is the place in the excluded strings, kNone once the text itself has
/// ended and only stops go on; `stops` are the partial stops under way; `utf8` the place inside a character.
struct Place {
    uint32_t text = 0;
    std::vector<uint32_t> stops;
    uint8_t utf8 = 0;

    auto operator<=>(const Place &) const = default;
    bool dead() const { return text == kNone && stops.empty(); }
};

class TextBuilder {
  public:
    TextBuilder(NfaBuilder &out, const Vocab &vocab, uint32_t flags, const Ast::Lists &lists)
        : out_(out), vocab_(vocab), flags_(flags), lists_(lists), excludes_(lists.names), stops_(lists.stops) {}

    uint32_t build() {
        if (excludes_.hit(0)) throw InputError("free text cannot exclude the empty string");
        for (std::string_view s : lists_.stops)
            for (size_t i = 0; i < s.size(); ++i) vocab_.specials_at(s, i, specials_);
        std::sort(specials_.begin(), specials_.end());
        specials_.erase(std::unique(specials_.begin(), specials_.end()), specials_.end());
        const uint32_t start = state({});
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

    Place step(const Place &p, uint8_t b) const {
        Place to;
        to.utf8 = utf8_next(p.utf8, b);
        to.text = kNone;
        if (to.utf8 == kUtf8Bad) return to;
        if (p.text != kNone) {
            to.text = excludes_.next(p.text, b);
            if (excludes_.hit(to.text)) to.text = kNone;
        }
        auto advance = [&](uint32_t node) {
            const uint32_t child = stops_.child(node, b);
            if (child) to.stops.push_back(child);
        };
        for (uint32_t s : p.stops) advance(s);
        if (p.text != kNone) advance(0);
        commit(to);
        std::sort(to.stops.begin(), to.stops.end());
        return to;
    }

    /// A complete stop ends the text; only a longer stop that began where it began may still go on.
    void commit(Place &p) const {
        std::vector<uint32_t> done;
        for (uint32_t s : p.stops)
            if (stops_.stop(s) != kNone) done.push_back(s);
        if (done.empty()) return;
        p.text = kNone;
        p.stops = std::move(done);
    }

    void fill(const Place &p, uint32_t self) {
        std::vector<uint32_t> ways;
        for (uint32_t s : p.stops)
            if (stops_.stop(s) != kNone) ways.push_back(out_.accept(stops_.stop(s) + 1));
        if (p.text != kNone && p.utf8 == 0 && (flags_ & kTextMayEnd)) ways.push_back(out_.accept(0));
        uint32_t on = byte_edges(p);
        // Counting characters happens at their first byte, so a tick guards every step from a boundary.
        if (on != kDead && p.utf8 == 0 && (flags_ & kTextCountsChars)) on = out_.add(Nfa::Tick, on, 1);
        ways.push_back(on);
        if (p.utf8 == 0) special_edges(p, ways);
        out_.fill_split(self, ways);
    }

    uint32_t byte_edges(const Place &p) {
        std::bitset<256> telling;
        for (uint32_t s : p.stops) stops_.telling_bytes(s, telling);
        if (p.text != kNone) {
            stops_.telling_bytes(0, telling);
            excludes_.telling_bytes(p.text, telling);
        }
        std::vector<ByteEdge> edges;
        auto push = [&](uint8_t b, uint32_t to) {
            if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == b) edges.back().high = b;
            else edges.push_back({b, b, to});
        };
        uint32_t plain[kUtf8Bad];  // by the UTF-8 state that a byte without meaning leads to
        std::fill(std::begin(plain), std::end(plain), kNone);
        for (int i = 0; i < 256; ++i) {
            const auto b = static_cast<uint8_t>(i);
            const uint8_t utf8 = utf8_next(p.utf8, b);
            if (utf8 == kUtf8Bad) continue;
            if (telling[b]) {
                const Place to = step(p, b);
                if (!to.dead()) push(b, state(to));
            } else if (p.text != kNone) {
                if (plain[utf8] == kNone) plain[utf8] = state(Place{0, {}, utf8});
                push(b, plain[utf8]);
            }
        }
        return out_.bytes(edges);
    }

    /// A special token may stand for its text where that text lies wholly inside a stop.
    void special_edges(const Place &p, std::vector<uint32_t> &ways) {
        for (uint32_t id : specials_) {
            const std::string_view text = vocab_.bytes(id);
            Place to = p;
            for (size_t i = 0; i < text.size() && !to.dead(); ++i) to = step(to, static_cast<uint8_t>(text[i]));
            to.text = kNone;
            std::erase_if(to.stops, [&](uint32_t s) { return stops_.depth(s) < text.size(); });
            if (!to.dead() && to.utf8 != kUtf8Bad) ways.push_back(out_.token({id}, false, state(to)));
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

uint32_t NfaBuilder::free_text(const Ast::Node &node, const Ast::Lists &lists) {
    return TextBuilder(*this, vocab_, node.slot, lists).build();
}

}  // namespace dovetail
