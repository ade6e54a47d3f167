// A walk over a character run: tokens of these characters are looked up, and only where others end them is there
// something to walk.
#include <algorithm>

#include "mask/byte_only.h"
#include "mask/cache.h"

namespace dovetail {

namespace {

constexpr uint32_t kWorthSkipping = 96;  // trie nodes; for fewer a run is not looked for
constexpr size_t kMostStates = 12;       // of a run, and stacks at once

/// Whether a mask is known for the state of a stack.
bool has_mask(const Config &c) {
    const DState *loop = c.d->owner->loop_state();
    return c.d == loop && loop->uncounted_mask && c.counter == Counter{};
}

/// Whether a character leads a stack to where a mask is known: what follows is known over.
bool leads_to_known_suffix(const Config &c, uint8_t sample) {
    DState *to = c.d->next(sample);
    if (!to || to == c.d) return false;
    const Config next = moved(c, to);
    return is_byte_only(next) && has_mask(next);
}

bool same_stacks(const std::vector<Config> &a, const std::vector<Config> &b) {
    return std::ranges::equal(
        a, b, [](const Config &x, const Config &y) { return x.d == y.d && x.counter == y.counter && same_stack(x.parent, y.parent); });
}

/// The characters that lead all stacks where the sample does.
CharSet chars_like(const std::vector<Config> &stacks, uint8_t sample) {
    CharSet common;
    for (const Config &c : stacks) {
        const CharSet &chars = c.d->owner->chars_to(*c.d, c.d->next(sample));
        common = &c == &stacks[0] ? chars : common.common(chars);
    }
    return common;
}

}  // namespace

/// Where `tops` come by the characters that lead them all like the sample: until the stacks stay as they are, as in a
/// string, or none is left, as where characters are counted.
bool Walker::follow_run(std::span<const Config> tops, uint8_t sample, Stages &stages) {
    stages = {{}, {{tops.begin(), tops.end()}}, false};
    for (size_t states = 0;;) {
        const std::vector<Config> &now = stages.before.back();
        const bool first = stages.before.size() == 1;
        const std::vector<Config> *last = first ? nullptr : &stages.before[stages.before.size() - 2];
        const auto same_state = [](const Config &a, const Config &b) { return a.d == b.d; };
        if (!last || !std::ranges::equal(now, *last, same_state)) {
            if ((states += now.size()) > kMostStates) return false;
            const CharSet chars = chars_like(now, sample);
            stages.chars = first ? chars : stages.chars.common(chars);
            if (stages.chars.ascii() < kManyChars) return false;
        }
        exits_.clear();
        ahead_[0].tops = now;
        mover_.step(ahead_[0], sample, true, ahead_[1]);
        const std::vector<Config> &next = ahead_[1].tops;
        if (!exits_.empty()) return false;
        stages.limited = next.empty();
        if (stages.limited || same_stacks(next, now) || stages.before.size() > vocab_.longest()) return true;
        stages.before.push_back(next);
    }
}

/// The run of which the path to a node consists, after a space where it is `spaced`.
bool Walker::find_run(std::string_view path, std::span<const Config> tops, Stages &stages, bool &spaced) {
    for (const uint8_t sample : {'e', 'E', '.'}) {  // some are among any characters that are many
        if (std::ranges::none_of(tops, [&](const Config &c) { return c.d->next(sample) != nullptr; })) continue;
        if (tops.size() == 1 && leads_to_known_suffix(tops[0], sample)) continue;
        if (!follow_run(tops, sample, stages)) continue;
        const std::vector<Config> &last = stages.before.back();
        if (stages.before.size() > 1 && last.size() == 1 && has_mask(last[0])) continue;
        spaced = !path.empty() && path[0] == ' ' && !stages.chars.has(' ');
        if (holds_only(path.substr(spaced), stages.chars)) return true;
    }
    return false;
}

/// Takes the tokens below a node that consist of a run, and enters the nodes that end it. False where there is no run.
bool Walker::skip_run(uint32_t node, size_t level, std::span<const Config> tops) {
    const auto &nodes = vocab_.nodes();
    if (!has(Shortcut::CharacterRun) || nodes[node].end - node < kWorthSkipping) return false;
    const size_t frames = frames_.used();
    const std::string_view path = vocab_.path(node);
    Stages stages;
    bool spaced = false;
    if (!find_run(path, tops, stages, spaced)) {
        frames_.rewind(frames);
        return false;
    }
    const CharRun &run = masks_.run(stages.chars, spaced);
    const auto longest = static_cast<uint32_t>(stages.before.size() - 1);
    const uint32_t most = stages.limited ? longest + static_cast<uint32_t>(count_chars(path)) : kNone;
    out_->runs.push_back({&run, {nodes[node + 1].first, nodes[nodes[node].end].first}, most});
    bool wanted[256] = {};
    for (const std::vector<Config> &stage : stages.before) note_bytes(stage, wanted);
    KnownSuffix known;
    uint32_t last = kNone;
    const auto end = std::lower_bound(run.ends.begin(), run.ends.end(), nodes[node].end);
    for (auto it = std::upper_bound(run.ends.begin(), run.ends.end(), node); it != end; ++it) {
        if (!wanted[run.bytes[static_cast<size_t>(it - run.ends.begin())]]) continue;
        const uint32_t way = *it;
        const TrieNode &at = nodes[way];
        const size_t chars = count_chars(vocab_.path(way).substr(path.size(), at.depth - 1 - path.size()));
        if (chars > longest && stages.limited) continue;
        const std::vector<Config> &from = stages.before[std::min<size_t>(chars, longest)];
        if (std::ranges::none_of(from, [&](const Config &c) { return c.d->next(at.byte) != nullptr; })) continue;
        const bool sibling = last != kNone && nodes[last].end == way && nodes[last].depth == at.depth;
        if (sibling && from.size() == 1 && goes_with(known, from[0].d->next(at.byte), at.byte)) {
            share(known.chain, way);
        } else {
            levels_[level].tops = from;
            enter(way, level);
            known = last_;
        }
        last = way;
    }
    last_.to = nullptr;
    frames_.rewind(frames);
    return true;
}

}  // namespace dovetail
