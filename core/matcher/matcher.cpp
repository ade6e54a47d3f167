// Masks, tokens, bytes, forced text and rollback of one generation.

#include "matcher/matcher.h"

#include <algorithm>
#include <unordered_map>

#include "mask/cache.h"

namespace dovetail {

namespace {

constexpr size_t kMaxForced = 1u << 16;

}  // namespace

Matcher::Matcher(std::shared_ptr<Grammar> grammar, const std::vector<uint32_t> &stops, bool only)
    : grammar_(std::move(grammar)), store_(*grammar_->store) {
    if (!only) stops_ = store_.vocab().stops();
    for (uint32_t t : stops) {
        if (t >= store_.vocab().size())
            throw MisuseError("stop token id " + std::to_string(t) + " is outside the vocabulary of " +
                              std::to_string(store_.vocab().size()) + " tokens");
        if (!is_stop(t)) stops_.push_back(t);
        if (!store_.vocab().is_stop(t)) text_stops_.push_back(t);
    }
    const std::lock_guard guard(store_.lock());
    start();
}

Matcher::Matcher(const Matcher &other)
    : grammar_(other.grammar_), store_(other.store_), stops_(other.stops_), text_stops_(other.text_stops_), position_(other.position_),
      at_(other.at_), finished_(other.finished_), collect_at_(other.collect_at_) {
    if (other.keys_) keys_ = std::make_unique<ObjectKeys>(*other.keys_);
    const std::lock_guard guard(store_.lock());
    copy_live(other.history_);
}

Matcher::~Matcher() = default;

void Matcher::start() {
    frames_ = std::make_unique<Arena<Frame>>();
    marks_ = std::make_unique<Arena<Mark>>();
    mover_ = std::make_unique<Mover<Matcher>>(*this, *frames_);
    history_.clear();
    position_.assign(1, 0);
    if (grammar_->ends_keys) keys_ = std::make_unique<ObjectKeys>();
    at_ = 0;
    finished_ = false;
    Stacks first;
    mover_->arrive(store_.automaton(*grammar_->root).start(), grammar_->init, nullptr, nullptr, first);
    history_.push_back(std::move(first));
    end_by_itself();
}

const Mark *Matcher::opened(const CallSite &site, const Mark *marks) {
    for (uint32_t name : site.captures) marks = marks_->make({marks, at_, name, true});
    return marks;
}

const Mark *Matcher::closed(const CallSite &site, uint32_t exit, const Mark *marks) {
    if (site.captures.empty()) return marks;
    const uint64_t at = at_ - std::min<uint64_t>(at_, site.returns[exit].trailing);
    for (size_t i = site.captures.size(); i-- > 0;) marks = marks_->make({marks, at, site.captures[i], false});
    return marks;
}

void Matcher::bottom(uint32_t exit, const Mark *marks, Stacks &out) {
    if (exit != 0 || out.complete) return;
    out.complete = true;
    out.end_marks = marks;
}

void Matcher::fill_mask(uint32_t *out) {
    if (finished_) {
        std::fill(out, out + mask_words(), 0);
        return;
    }
    if (!keys_) {
        const std::shared_lock guard(store_.lock());
        if (store_.masks().fill_known(now(), out)) {
            finish_mask(out);
            return;
        }
    }
    const std::lock_guard guard(store_.lock());
    fill_now(out);
}

void Matcher::fill_now(uint32_t *out) {
    store_.masks().fill(now(), out);
    if (keys_) drop_known_keys(out);
    finish_mask(out);
}

/// Sets the stop tokens where the output may end, and clears them elsewhere. Where nothing else can spell what must come,
/// they stay, because a sampler cannot draw from nothing.
void Matcher::finish_mask(uint32_t *out) const {
    const auto flip = [&](uint32_t t) { out[t / 32] ^= 1u << (t % 32); };
    const auto has = [&](uint32_t t) { return out[t / 32] >> (t % 32) & 1; };
    if (now().complete) {
        for (uint32_t t : stops_)
            if (!has(t)) flip(t);
        return;
    }
    std::vector<uint32_t> cleared;
    for (uint32_t t : text_stops_) {
        if (!has(t) || is_named(t)) continue;
        flip(t);
        cleared.push_back(t);
    }
    if (!cleared.empty() && std::all_of(out, out + mask_words(), [](uint32_t word) { return word == 0; }))
        for (uint32_t t : cleared) flip(t);
}

/// Does the grammar ask for this very token here, by its id or by the text of a special token?
bool Matcher::is_named(uint32_t token) const {
    return std::any_of(now().tops.begin(), now().tops.end(), [&](const Config &c) {
        if (!c.d->extra) return false;
        const auto &edges = c.d->extra->tokens;
        return std::any_of(edges.begin(), edges.end(),
                           [&](const TokenEdge &e) { return e.to && !e.set->exclude && e.set->has(token, store_.vocab()); });
    });
}

bool Matcher::allows_now(uint32_t token) {
    std::vector<uint32_t> mask(mask_words());
    fill_now(mask.data());
    return mask[token / 32] >> (token % 32) & 1;
}

void Matcher::end_by_itself() {
    if (!stops_.empty() || !now().complete) return;
    std::vector<uint32_t> mask(mask_words());
    if (!now().tops.empty()) fill_now(mask.data());
    finished_ = std::all_of(mask.begin(), mask.end(), [](uint32_t word) { return word == 0; });
}

bool Matcher::is_stop(uint32_t token) const { return std::find(stops_.begin(), stops_.end(), token) != stops_.end(); }

bool Matcher::take_bytes(const Stacks &from, std::string_view bytes, bool count_tokens, Stacks &out, Quote &quote) {
    Stacks spare;
    const Stacks *at = &from;
    for (const char c : bytes) {
        ++at_;
        if (keys_) keys_->read(static_cast<uint8_t>(c));
        mover_->step(*at, static_cast<uint8_t>(c), count_tokens, spare);
        std::swap(spare, out);
        at = &out;
        if (out.dead()) return false;
        if (c == '"' && grammar_->bounds_keys) pass_quote(out, quote);
    }
    return true;
}

Stacks Matcher::before_token() const {
    Stacks from = now();
    for (Config &c : from.tops)
        if (c.d->counts_tokens) c.counter.need &= ~kTokenCounted;
    return from;
}

/// Where the token leads to; false where it may not come. What was read of it is the caller's to keep or undo.
bool Matcher::try_token(uint32_t token, Stacks &next) {
    const Vocab &vocab = store_.vocab();
    const std::string_view bytes = vocab.bytes(token);
    const Stacks from = before_token();
    at_ = position();
    if (!vocab.in_trie(token) || !take_bytes(from, bytes, true, next)) {
        next.clear();
        if (keys_) keys_->undo();
        for (size_t i = 0; keys_ && i < bytes.size(); ++i) keys_->read(static_cast<uint8_t>(bytes[i]));
    }
    std::erase_if(next.tops, is_stuck);
    at_ = position() + bytes.size();
    for (const Config &c : from.tops) {
        if (!c.d->extra) continue;
        for (const TokenEdge &e : c.d->extra->tokens)
            if (e.to && e.set->has(token, vocab)) mover_->arrive(e.to, c.counter, c.parent, c.marks, next);
    }
    return !next.dead() && can_go_on(next);
}

bool Matcher::exists(int64_t token) const { return token >= 0 && token < static_cast<int64_t>(store_.vocab().size()); }

bool Matcher::accept(int64_t id) {
    if (!exists(id))
        throw MisuseError("token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(store_.vocab().size()) +
                          " tokens");
    const auto token = static_cast<uint32_t>(id);
    const std::lock_guard guard(store_.lock());
    if (finished_) return false;
    if (is_stop(token)) {
        if (now().complete) {
            commit(now(), position());
            finished_ = true;
            return true;
        }
        if (!allows_now(token)) return false;
    }
    const Undone reading(keys_.get());
    Stacks next;
    if (!try_token(token, next)) return false;
    commit(std::move(next), position() + store_.vocab().bytes(token).size());
    return true;
}

bool Matcher::accept_bytes(std::string_view bytes) {
    const std::lock_guard guard(store_.lock());
    if (finished_ && !(stops_.empty() && bytes.empty())) return false;
    Stacks next;
    at_ = position();
    const Undone reading(keys_.get());
    if (bytes.empty()) next = now();
    else if (!take_bytes(now(), bytes, false, next) || !can_go_on(next)) return false;
    commit(std::move(next), position() + bytes.size());
    return true;
}

void Matcher::commit(Stacks next, uint64_t position) {
    next.tops.shrink_to_fit();
    history_.push_back(std::move(next));
    position_.push_back(position);
    if (keys_) keys_->commit();
    if (frames_->used() + marks_->used() > collect_at_) collect();
    end_by_itself();
}

size_t Matcher::accept_tokens(const int64_t *tokens, size_t count) {
    size_t good = 0;
    while (good < count && exists(tokens[good]) && accept(tokens[good])) ++good;
    return good;
}

size_t Matcher::validate(const int64_t *tokens, size_t count) {
    const size_t good = accept_tokens(tokens, count);
    rollback(good);
    return good;
}

void Matcher::rollback(size_t steps) {
    const std::lock_guard guard(store_.lock());
    if (steps > this->steps())
        throw MisuseError("cannot roll back " + std::to_string(steps) + " steps after " + std::to_string(this->steps()));
    if (steps == 0) return;
    history_.resize(history_.size() - steps);
    position_.resize(position_.size() - steps);
    if (keys_) keys_->rollback(steps);
    finished_ = false;
}

void Matcher::reset() {
    const std::lock_guard guard(store_.lock());
    start();
}

std::string Matcher::forced() {
    const std::lock_guard guard(store_.lock());
    std::string bytes;
    if (finished_) return bytes;
    const Undone reading(keys_.get());
    Stacks at = now(), next;
    Quote quote;
    at_ = position();
    while (!at.complete && bytes.size() < kMaxForced) {
        char only = 0;
        bool has_byte = false, choice = false;
        for (const Config &c : at.tops) {
            choice = choice || (c.d->extra && !c.d->extra->tokens.empty());
            c.d->each_range([&](uint8_t low, uint8_t high, const DState *to) {
                Counter counter = c.counter;
                if (c.d->measured && !c.d->measure(*to, counter)) return;
                choice = choice || low != high || (has_byte && only != static_cast<char>(low));
                only = static_cast<char>(low);
                has_byte = true;
            });
        }
        if (choice || !has_byte) break;
        if (!take_bytes(at, {&only, 1}, false, next, quote) || !can_go_on(next)) break;
        std::swap(at, next);
        bytes.push_back(only);
    }
    return bytes;
}

std::vector<CaptureMark> Matcher::captures() const {
    const std::lock_guard guard(store_.lock());
    const Stacks &s = now();
    const Mark *last = s.complete ? s.end_marks : s.tops.empty() ? nullptr : s.tops[0].marks;
    std::vector<CaptureMark> marks;
    for (const Mark *m = last; m; m = m->before) marks.push_back({m->at, store_.name(m->name), m->open});
    std::reverse(marks.begin(), marks.end());
    return marks;
}

void Matcher::collect() {
    const std::vector<Stacks> old = std::move(history_);
    const auto frames = std::move(frames_);
    const auto marks = std::move(marks_);
    copy_live(old);
    // Work grows with what is kept, so it is done again only after as much has been made anew.
    collect_at_ = 4096 + 2 * (frames_->used() + marks_->used()) + history_.size();
}

void Matcher::copy_live(const std::vector<Stacks> &from) {
    frames_ = std::make_unique<Arena<Frame>>();
    marks_ = std::make_unique<Arena<Mark>>();
    mover_ = std::make_unique<Mover<Matcher>>(*this, *frames_);
    history_ = from;
    std::unordered_map<const Frame *, Frame *> frame_of{{nullptr, nullptr}};
    std::unordered_map<const Mark *, const Mark *> mark_of{{nullptr, nullptr}};
    // Lists are followed until something already copied, then rebuilt from there upwards.
    auto copy_frame = [&](Frame *f) {
        std::vector<const Frame *> path;
        while (!frame_of.contains(f)) {
            path.push_back(f);
            f = f->parent;
        }
        for (size_t i = path.size(); i-- > 0;)
            frame_of[path[i]] = frames_->make(make_frame(frame_of[path[i]->parent], path[i]->site, path[i]->counter));
        return path.empty() ? frame_of[f] : frame_of[path[0]];
    };
    auto copy_mark = [&](const Mark *m) {
        std::vector<const Mark *> path;
        while (!mark_of.contains(m)) {
            path.push_back(m);
            m = m->before;
        }
        for (size_t i = path.size(); i-- > 0;)
            mark_of[path[i]] = marks_->make({mark_of[path[i]->before], path[i]->at, path[i]->name, path[i]->open});
        return path.empty() ? mark_of[m] : mark_of[path[0]];
    };
    for (Stacks &s : history_) {
        s.end_marks = copy_mark(s.end_marks);
        for (Config &c : s.tops) {
            c.parent = copy_frame(c.parent);
            c.marks = copy_mark(c.marks);
        }
    }
}

void fill_masks(const std::vector<Matcher *> &matchers, const std::vector<uint32_t *> &rows) {
    for (size_t i = 0; i < matchers.size(); ++i) {
        if (matchers[i]->is_finished()) std::fill(rows[i], rows[i] + matchers[i]->mask_words(), ~uint32_t{0});
        else matchers[i]->fill_mask(rows[i]);
    }
}

}  // namespace dovetail
