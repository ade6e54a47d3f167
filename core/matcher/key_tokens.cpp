// Finds the tokens in which a key may end or begin, once for each vocabulary.

#include "matcher/key_tokens.h"

#include <algorithm>

namespace dovetail {

namespace {

/// How much of a key there may be in a token.
enum KeyPart { kNothing, kBeginning, kWhole };

/// Where the string ends that is under way before the first of these bytes.
size_t string_end(std::string_view bytes, bool escaped) {
    size_t at = escaped ? 1 : 0;
    while (at < bytes.size() && bytes[at] != '"') at += bytes[at] == '\\' ? 2 : 1;
    return std::min(at, bytes.size());
}

/// What comes of bytes before which no string is under way, given where they begin.
///
/// An object that begins in a token has no key yet, so its first one is none that was there before. What else is open is
/// not known: every bracket around is taken for that of an object.
KeyPart find_key(std::string_view bytes, ObjectKeys::Where where) {
    std::vector<uint32_t> fresh;  // the keys of the objects that have begun here
    for (size_t at = 0; at < bytes.size(); ++at) {
        const auto byte = static_cast<uint8_t>(bytes[at]);
        if (is_blank(byte)) continue;
        if (where == ObjectKeys::kBehindKey && byte != ':') return kNothing;
        const bool before_key = where == ObjectKeys::kBeforeKey;
        where = ObjectKeys::kElsewhere;
        if (byte == '"') {
            const bool first = !fresh.empty() && fresh.back() == 0;
            at += 1 + string_end(bytes.substr(at + 1), false);
            if (at == bytes.size()) return before_key && !first ? kBeginning : kNothing;
            if (before_key && !first) return kWhole;
            if (before_key) ++fresh.back(), where = ObjectKeys::kBehindKey;
        } else if (byte == '{' || byte == '[') {
            fresh.push_back(0);
            where = ObjectKeys::kBeforeKey;
        } else if (byte == '}' || byte == ']') {
            if (!fresh.empty()) fresh.pop_back();
        } else if (byte == ',') {
            where = ObjectKeys::kBeforeKey;
        }
    }
    return where == ObjectKeys::kBeforeKey && (fresh.empty() || fresh.back() > 0) ? kBeginning : kNothing;
}

KeyPart find_key_behind_string(std::string_view bytes) {
    KeyPart most = kNothing;
    for (const bool escaped : {false, true}) {
        const size_t end = string_end(bytes, escaped);
        if (end < bytes.size()) most = std::max(most, find_key(bytes.substr(end + 1), ObjectKeys::kElsewhere));
    }
    return most;
}

/// How much of a key and its successor stands after some quote of `bytes`, which may end another key.
KeyPart find_pair(std::string_view bytes) {
    KeyPart most = kNothing;
    for (size_t at = bytes.find('"'); at != std::string_view::npos; at = bytes.find('"', at + 1))
        most = std::max(most, find_key(bytes.substr(at + 1), ObjectKeys::kBehindKey));
    return most;
}

}  // namespace

KeyTokens::KeyTokens(const Vocab &vocab) {
    const auto &nodes = vocab.nodes();
    for (uint32_t n = 1; n + 1 < nodes.size(); ++n) {
        if (nodes[n].byte != '"') continue;
        const std::string_view path = vocab.path(n);
        for (const bool escaped : {false, true})
            if (string_end(path, escaped) == path.size() - 1) closing_[escaped].push_back(n);
    }
    for (const uint32_t token : vocab.order()) {
        const std::string_view bytes = vocab.bytes(token);
        if (bytes.find_first_of("\",") == std::string_view::npos) continue;
        const KeyPart pair = find_pair(bytes), inside = find_key_behind_string(bytes);
        if (pair == kWhole) pairs_.push_back(token);
        if (pair != kNothing) begun_pairs_.push_back(token);
        auto add = [&](ObjectKeys::Where where, KeyPart part) {
            if (part == kWhole && pair != kWhole) whole_[where].push_back(token);
            if (part != kNothing && pair == kNothing) beginning_[where].push_back(token);
        };
        add(ObjectKeys::kInKey, inside);
        add(ObjectKeys::kInString, inside);
        for (const ObjectKeys::Where where : {ObjectKeys::kBehindKey, ObjectKeys::kElsewhere, ObjectKeys::kBeforeKey})
            add(where, find_key(bytes, where));
    }
}

}  // namespace dovetail
