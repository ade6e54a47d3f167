// Loops over many characters: what a walk finds in them is looked up, and only where they end there is something to walk.
#include <algorithm>

#include "behind.h"
#include "mask.h"

namespace dovetail {

namespace {

constexpr uint32_t kWorthLeaping = 96;  // trie nodes; for fewer a loop is not looked for
constexpr size_t kAhead = 2;            // characters, after which a loop may begin

/// Whether a mask is known for the state of a stack.
bool has_mask(const Config &c) {
    const DState *home = c.d->owner->home();
    return c.d == home && home->plain_mask;
}

/// Whether many characters, the sample among them, leave the stack as it is.
bool loops_on(const Config &c, uint8_t sample) {
    if (c.d->next(sample) != c.d || !is_plain(c)) return false;
    const Loops &loops = loops_of(c);
    return !loops.ticks && loops.has(sample) && loops.ascii() >= kManyChars;
}

/// Whether it is quick to see that the sample does not lead a stack into a loop, as it mostly does not.
bool is_lost(const Config &c, uint8_t sample) {
    DState *to = c.d->next(sample);
    if (!to || to == c.d) return !to;
    const Config next = moved(c, to);
    return is_plain(next) && next.d->next(sample) != next.d;
}

/// Whether the sample leads a stack to where a mask is known: what follows is handed over.
bool is_handed_over(const Config &c, uint8_t sample) {
    DState *to = c.d->next(sample);
    if (!to || to == c.d) return false;
    const Config next = moved(c, to);
    return is_plain(next) && has_mask(next);
}

/// The last character of a text, of which one byte is missing; or nothing.
std::string_view begun_char(std::string_view text) {
    if (text.empty()) return {};
    const std::string_view last = text.substr(text.size() - last_char(text));
    return last.size() + 1 == char_size(static_cast<uint8_t>(last[0])) ? last : std::string_view();
}

/// The stacks that are left behind the first bytes of a character.
void followed(const std::vector<Config> &stacks, std::string_view bytes, std::vector<Config> &out) {
    out.clear();
    for (const Config &c : stacks) {
        DState *to = c.d;
        for (size_t i = 0; to && i < bytes.size(); ++i)
            if ((to = to->next(static_cast<uint8_t>(bytes[i])))) to->owner->expand(*to);
        if (to) out.push_back({to, c.counter, c.parent, nullptr});
    }
}

/// Whether all characters of a set lead from one state to another, or from it nowhere.
bool all_lead(const HoledSet &chars, const DState &from, const DState *to) {
    const auto arrives = [&](const DState *at) { return at == to; };
    const auto misses = [&](const std::pair<uint32_t, uint32_t> &range) {
        for (uint32_t code = range.first; code <= range.second; ++code)
            if (!chars.misses(code)) return false;
        return true;
    };
    Behind behind(arrives, kFewMissing);
    for (int b = 0; b < 256; ++b) {
        const auto byte = static_cast<uint8_t>(b);
        if (!chars.begins(byte)) continue;
        if (byte < 0x80 ? from.next(byte) != to : !behind.look(from, byte) || !std::ranges::all_of(behind.missing(), misses)) return false;
    }
    return true;
}

}  // namespace

/// Where `tops` come by many characters, the sample among them, until these leave the stacks as they are: at once, or a
/// few characters ahead as in [a-z]\w+.
bool Walker::look_for_loop(std::span<const Config> tops, uint8_t sample, Stages &stages) {
    const auto loops = [&](const Config &c) { return loops_on(c, sample); };
    const auto lost = [&](const Config &c) { return is_lost(c, sample); };
    // Text of which characters are counted is in another state behind each.
    const auto counts = [](const Config &c) { return c.d->measured && c.counter != Counter{}; };
    stages.assign(1, {tops.begin(), tops.end()});
    while (!std::ranges::all_of(stages.back(), loops)) {
        if (stages.size() > kAhead || std::ranges::all_of(stages.back(), lost) || std::ranges::any_of(stages.back(), counts)) return false;
        ahead_[0].tops = stages.back();
        exits_.clear();
        mover_.step(ahead_[0], sample, true, ahead_[1]);
        if (!exits_.empty() || ahead_[1].tops.empty()) return false;
        stages.push_back(ahead_[1].tops);
    }
    const HoledSet &chars = loops_of(stages.back()[0]);
    return std::ranges::all_of(stages.back(), [&](const Config &c) { return static_cast<const HoledSet &>(loops_of(c)) == chars; });
}

/// The same for the characters of which the path to a node consists, behind a space where it is `spaced`.
bool Walker::find_loop(std::string_view path, std::span<const Config> tops, Stages &stages, bool &spaced) {
    for (const uint8_t sample : {'e', 'E', '.'}) {  // some are among any characters that are many
        if (std::ranges::all_of(tops, [&](const Config &c) { return is_lost(c, sample); })) continue;
        if (tops.size() == 1 && is_handed_over(tops[0], sample)) continue;
        if (!look_for_loop(tops, sample, stages)) continue;
        if (stages.size() > 1 && stages.back().size() == 1 && has_mask(stages.back()[0])) continue;
        const HoledSet &chars = loops_of(stages.back()[0]);
        spaced = !path.empty() && path[0] == ' ' && !chars.has(' ');
        if (!holds_only(path.substr(spaced), chars)) continue;
        const auto leads = [&](const Config &c) { return all_lead(chars, *c.d, c.d->next(sample)); };
        const auto lead = [&](const std::vector<Config> &stage) { return std::ranges::all_of(stage, leads); };
        if (std::all_of(stages.begin(), stages.end() - 1, lead)) return true;
    }
    return false;
}

/// Enters the children of a node where all stacks loop on many characters: what these lead to is known, the others are
/// entered. False where it is no such loop.
bool Walker::leap(uint32_t node, size_t level, std::span<const Config> tops) {
    const auto &nodes = vocab_.nodes();
    if (nodes[node].end - node < kWorthLeaping) return false;
    const size_t frames = frames_.used();
    const std::string_view path = vocab_.path(node);
    Stages stages;
    bool spaced = false;
    if (!find_loop(path, tops, stages, spaced)) {
        frames_.rewind(frames);
        return false;
    }
    const Runs &runs = masks_.runs(loops_of(stages.back()[0]), spaced);
    out_->runs.push_back({&runs, {nodes[node + 1].first, nodes[nodes[node].end].first}});
    Run run;
    uint32_t last = kNone;
    std::vector<Config> between;
    bool wanted[256] = {};
    for (const std::vector<Config> &stage : stages) note_bytes(stage, wanted);
    std::fill(wanted + 0x80, wanted + 0xC0, true);  // a character that is missing ends
    const auto end = std::lower_bound(runs.ways.begin(), runs.ways.end(), nodes[node].end);
    for (auto it = std::upper_bound(runs.ways.begin(), runs.ways.end(), node); it != end; ++it) {
        if (!wanted[runs.bytes[static_cast<size_t>(it - runs.ways.begin())]]) continue;
        const uint32_t way = *it;
        const TrieNode &at = nodes[way];
        const std::string_view before = vocab_.path(way).substr(0, at.depth - 1), begun = begun_char(before);
        const size_t chars_before = count_chars(before.substr(path.size(), before.size() - path.size() - begun.size()));
        const std::vector<Config> &stage = stages[std::min(chars_before, stages.size() - 1)];
        if (!begun.empty()) followed(stage, begun, between);
        const std::vector<Config> &from = begun.empty() ? stage : between;
        if (std::ranges::none_of(from, [&](const Config &c) { return c.d->next(at.byte) != nullptr; })) continue;
        const bool sibling = last != kNone && nodes[last].end == way && nodes[last].depth == at.depth;
        if (sibling && from.size() == 1 && goes_on(run, from[0].d->next(at.byte), at.byte)) {
            share(run.chain, way);
        } else {
            if (from.size() > 1 || !is_plain(from[0]) || !hand_over_again(from[0], from[0].d->next(at.byte), way)) {
                levels_[level].tops = from;
                enter(way, level);
            }
            run = run_;
        }
        last = way;
    }
    run_.to = nullptr;
    frames_.rewind(frames);
    return true;
}

}  // namespace dovetail
