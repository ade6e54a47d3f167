#include "key_tokens.h"

#include <algorithm>

namespace dovetail {

namespace {

/// How much of a key there may be in a token.
enum Found { kNothing, kBeginning, kWhole };

/// Where the string ends that is under way before the first of these bytes.
size_t string_end(std::string_view bytes, bool escaped) {
    size_t at = escaped ? 1 : 0;
    while (at < bytes.size() && bytes[at] != '"') at += bytes[at] == '\\' ? 2 : 1;
    return std::min(at, bytes.size());
}

/// What comes of bytes before which no string is under way; all brackets are taken for those of objects, as nobody
/// knows which are closed here.
Found find_key(std::string_view bytes, bool before_key) {
    for (size_t at = 0; at < bytes.size(); ++at) {
        if (bytes[at] == '"') {
            const size_t end = at + 1 + string_end(bytes.substr(at + 1), false);
            if (end == bytes.size()) return before_key ? kBeginning : kNothing;
            if (before_key) return kWhole;
            at = end;
        } else if (bytes[at] == ',' || bytes[at] == '{') {
            before_key = true;
        } else if (!is_blank(static_cast<uint8_t>(bytes[at]))) {
            before_key = false;
        }
    }
    return before_key ? kBeginning : kNothing;
}

Found find_key_behind_string(std::string_view bytes) {
    Found found = kNothing;
    for (const bool escaped : {false, true}) {
        const size_t end = string_end(bytes, escaped);
        if (end < bytes.size()) found = std::max(found, find_key(bytes.substr(end + 1), false));
    }
    return found;
}

/// The same behind any quote: it may be the end of the first key that the reader is told of.
Found find_pair(std::string_view bytes) {
    Found found = kNothing;
    for (size_t at = bytes.find('"'); at != std::string_view::npos; at = bytes.find('"', at + 1))
        found = std::max(found, find_key(bytes.substr(at + 1), false));
    return found;
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
        if (bytes.find_first_of("\",{") == std::string_view::npos) continue;
        const Found pair = find_pair(bytes);
        const Found inside = find_key_behind_string(bytes), outside = find_key(bytes, false), before = find_key(bytes, true);
        if (pair == kWhole) pairs_.push_back(token);
        if (pair != kNothing) begun_pairs_.push_back(token);
        auto add = [&](Keys::Where where, Found found) {
            found = std::max(found, pair);
            if (found == kWhole) whole_[where].push_back(token);
            if (found != kNothing) beginning_[where].push_back(token);
        };
        add(Keys::kInKey, inside);
        add(Keys::kInString, inside);
        add(Keys::kBehindKey, outside);
        add(Keys::kElsewhere, outside);
        add(Keys::kBeforeKey, before);
    }
}

}  // namespace dovetail
