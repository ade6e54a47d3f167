// Follows the keys of open objects byte by byte, and takes that back.

#include "matcher/object_keys.h"

namespace dovetail {

void ObjectKeys::follow(uint8_t byte) {
    if (now_.where == kInKey || now_.where == kInString) {
        const bool key = now_.where == kInKey;
        if (now_.escaped) now_.escaped = false;
        else if (byte == '\\') now_.escaped = true;
        else if (byte == '"') now_.where = key ? kBehindKey : kElsewhere;
        if (now_.where == kInKey) now_.key.feed(byte);
        return;
    }
    if (now_.where == kBehindKey && byte != ':') {
        if (!is_blank(byte)) now_.open = kNone;
        return;
    }
    const bool before_key = now_.where == kBeforeKey;
    now_.where = kElsewhere;
    switch (byte) {
    case '"':
        now_.where = before_key ? kInKey : kInString;
        now_.string = output_.size();
        now_.key = {};
        now_.escaped = false;
        break;
    case '{':
    case '[': open(byte == '{'); break;
    case '}':
    case ']': now_.open = brackets_[now_.open].parent; break;
    case ',': now_.where = brackets_[now_.open].is_object ? kBeforeKey : kElsewhere; break;
    case '\\': now_.open = kNone; break;
    default:
        if (before_key && is_blank(byte)) now_.where = kBeforeKey;
    }
}

void ObjectKeys::open(bool is_object) {
    brackets_.push_back({now_.open, is_object, has_doubt()});
    now_.open = now_.brackets++;
    now_.where = is_object ? kBeforeKey : kElsewhere;
}

bool ObjectKeys::is_quote(size_t at) const {
    if (output_[at] != '"') return false;
    size_t slashes = 0;
    while (slashes < at && output_[at - slashes - 1] == '\\') ++slashes;
    return slashes % 2 == 0;
}

bool ObjectKeys::begin_anew() {
    size_t at = output_.size() - 1;
    while (at > 0 && !is_quote(at - 1)) --at;
    if (at == 0) return false;
    now_.open = kNone;
    open(true);
    now_.string = at;
    now_.key = {};
    for (size_t i = at; i + 1 < output_.size(); ++i) now_.key.feed(static_cast<uint8_t>(output_[i]));
    now_.where = kBehindKey;
    return true;
}

bool ObjectKeys::ended(bool grows) {
    if (!is_behind_quote()) return true;
    if ((!on() || now_.where != kBehindKey) && !begin_anew()) return true;
    const Key key{place(now_.key), now_.open, now_.string, output_.size() - 1, !grows};
    const auto [first, last] = known_.equal_range(key.hash);
    for (auto it = first; it != last; ++it) {
        const Key &known = keys_[it->second];
        if (known.object != key.object) continue;
        if (known.end == key.end) return true;  // another stack has reported it
        if (text(known.begin, known.end) == text(key.begin, key.end)) return false;
    }
    known_.emplace(key.hash, now_.keys++);
    keys_.push_back(key);
    ++brackets_[key.object].keys;
    return true;
}

void ObjectKeys::add_beginning(const KeyHash &key, bool doubtful) {
    const auto [it, fresh] = beginnings_.try_emplace(place(key), doubtful);
    if (!fresh && (it->second || !doubtful)) return;
    it->second = doubtful;
    changes_.push_back({it->first, now_.open, fresh, doubtful});
    brackets_[now_.open].doubtful += doubtful;
    ++now_.beginnings;
}

void ObjectKeys::undo() {
    const State &state = history_.back();
    for (; now_.beginnings > state.beginnings; --now_.beginnings) {
        const Change change = changes_.back();
        changes_.pop_back();
        brackets_[change.object].doubtful -= change.doubtful;
        if (change.added) beginnings_.erase(change.hash);
        else beginnings_[change.hash] = false;
    }
    while (now_.keys > state.keys) {
        const Key &key = keys_[--now_.keys];
        auto it = known_.equal_range(key.hash).first;
        while (it->second != now_.keys) ++it;
        known_.erase(it);
        --brackets_[key.object].keys;
        keys_.pop_back();
    }
    brackets_.resize(state.brackets, {});
    output_.resize(state.size);
    now_ = state;
}

void ObjectKeys::rollback(size_t steps) {
    history_.resize(history_.size() - steps);
    undo();
}

}  // namespace dovetail
