#include "key_tokens.h"

#include <algorithm>

namespace dovetail {

namespace {

/// Where the string ends that is under way before the first of these bytes.
size_t string_end(std::string_view bytes, bool escaped) {
    size_t at = escaped ? 1 : 0;
    while (at < bytes.size() && bytes[at] != '"') at += bytes[at] == '\\' ? 2 : 1;
    return std::min(at, bytes.size());
}

/// Whether a key can begin and end in these bytes, which no string is under way before; brackets are all taken for
/// those of objects, as nobody knows which are closed here.
bool has_key(std::string_view bytes, bool before_key) {
    for (size_t at = 0; at < bytes.size(); ++at) {
        if (bytes[at] == '"') {
            const size_t end = at + 1 + string_end(bytes.substr(at + 1), false);
            if (end == bytes.size()) return false;
            if (before_key) return true;
            at = end;
        } else if (bytes[at] == ',' || bytes[at] == '{') {
            before_key = true;
        } else if (!is_blank(static_cast<uint8_t>(bytes[at]))) {
            before_key = false;
        }
    }
    return false;
}

bool has_key_behind_string(std::string_view bytes, bool escaped) {
    const size_t end = string_end(bytes, escaped);
    return end < bytes.size() && has_key(bytes.substr(end + 1), false);
}

/// The same behind any quote: it may be the end of the first key that the reader is told of.
bool has_pair(std::string_view bytes) {
    for (size_t at = bytes.find('"'); at != std::string_view::npos; at = bytes.find('"', at + 1))
        if (has_key(bytes.substr(at + 1), false)) return true;
    return false;
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
        if (std::count(bytes.begin(), bytes.end(), '"') < 2) continue;
        const bool pair = has_pair(bytes), inside = has_key_behind_string(bytes, false) || has_key_behind_string(bytes, true);
        if (pair) pairs_.push_back(token);
        for (const Keys::Where where : {Keys::kInKey, Keys::kInString})
            if (pair || inside) whole_[where].push_back(token);
        for (const Keys::Where where : {Keys::kBehindKey, Keys::kElsewhere})
            if (pair || has_key(bytes, false)) whole_[where].push_back(token);
        if (pair || has_key(bytes, true)) whole_[Keys::kBeforeKey].push_back(token);
    }
}

}  // namespace dovetail
