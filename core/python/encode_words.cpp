// Choices between words, and texts that are none of some words.
#include <map>

#include "encoder.h"

namespace dovetail {

/// Choices that begin with a word under the same captures are one call, which tells by its exit which word it was:
/// else each of a thousand tools would have a stack of its own.
void Encoder::choice(nb::handle parts, Draft &d, size_t depth) {
    int captured = 0;  // most choices are between other things
    each(parts, [&](nb::handle part) { captured += is_a(first_part(part), ir().capture); });
    if (captured < 2) return several(Code::Alt, parts, d, depth);
    const std::vector<std::vector<Named>> groups = named_alike(parts);
    CodeWriter w(d.code);
    w.op(Code::Alt);
    w.number(groups.size());
    ++d.weight;
    for (const std::vector<Named> &group : groups) {
        if (group.size() == 1) node(group[0].part, d, depth + 1);
        else words(group, d, depth);
    }
}

void Encoder::words(const std::vector<Named> &group, Draft &d, size_t depth) {
    std::map<std::string_view, std::vector<nb::handle>> by_word;
    for (const Named &member : group) by_word[member.word].push_back(member.part);
    Draft body;
    CodeWriter w(body.code);
    w.op(Code::Text);
    w.number(kTextNone);
    w.number(0);
    w.number(by_word.size());
    for (const auto &[word, parts] : by_word) w.text(word);
    branch(anonymous(std::move(body)), group[0].captures, d);
    CodeWriter arms(d.code);
    arms.number(by_word.size() + 1);
    arms.number(0);
    arms.number(0);
    for (const auto &[word, parts] : by_word) {
        arms.number(1);
        arms.number(0);
        arms.op(Code::Alt);
        arms.number(parts.size());
        for (nb::handle part : parts) rest(part, d, depth);
    }
}

/// What follows the first part of a sequence.
void Encoder::rest(nb::handle part, Draft &d, size_t depth) {
    CodeWriter w(d.code);
    w.op(Code::Seq);
    if (!is_a(part, ir().seq)) return w.number(0);
    const nb::handle parts = ir().seq_parts(part);
    w.number(length(parts) - 1);
    for (Py_ssize_t i = 1; i < PyTuple_Size(parts.ptr()); ++i) node(PyTuple_GetItem(parts.ptr(), i), d, depth + 1);
}

namespace {

constexpr size_t kMaxTrieDepth = 256;  // of one rule

/// One place in the trie of some words.
struct Place {
    bool listed = false;
    std::map<uint32_t, uint32_t> forks;  // by character
};

std::vector<Place> word_trie(nb::handle words) {
    std::vector<Place> trie(1);
    each(words, [&](nb::handle word) {
        if (!PyUnicode_Check(word.ptr())) throw InputError("a word is a string");
        uint32_t at = 0;
        for (Py_ssize_t i = 0; i < PyUnicode_GetLength(word.ptr()); ++i) {
            const auto [fork, fresh] = trie[at].forks.try_emplace(PyUnicode_ReadChar(word.ptr(), i), static_cast<uint32_t>(trie.size()));
            at = fork->second;
            if (fresh) trie.emplace_back();
        }
        trie[at].listed = true;
    });
    return trie;
}

/// The characters of some ranges that are no fork of a place, all of whose forks are among them.
Ranges leaving(const Ranges &ranges, const Place &place) {
    Ranges outside;
    size_t left = place.forks.size();
    auto fork = place.forks.begin();
    for (auto [low, high] : ranges) {
        for (; fork != place.forks.end() && fork->first <= high; ++fork) {
            if (fork->first < low) break;
            if (low < fork->first) outside.emplace_back(low, fork->first - 1);
            low = fork->first + 1;
            --left;
        }
        if (low <= high) outside.emplace_back(low, high);
    }
    if (left > 0) throw InputError("an unlisted word has a character that the text cannot have");
    return outside;
}

}  // namespace

/// Written out as the choice that it stands for.
void Encoder::unlisted(nb::handle o, Draft &d, size_t depth) {
    const std::vector<Place> trie = word_trie(ir().unlisted_words(o));
    const nb::handle chars = ir().unlisted_chars(o), rest = ir().unlisted_rest(o), other = ir().unlisted_other(o);
    if (!is_a(chars, ir().chars)) throw InputError("the characters of an unlisted text must be Chars");
    const Ranges ranges = range_list(ir().chars_ranges(chars), 0x10FFFF);
    std::vector<std::pair<uint32_t, uint32_t>> pending;  // places that begin a rule, because words may be long
    const auto write = [&](const auto &self, uint32_t at, Draft &out, size_t length) -> void {
        const Place &place = trie[at];
        CodeWriter w(out.code);
        w.op(Code::Alt);
        w.number(2 + (place.listed ? 0 : 1) + place.forks.size());
        if (!place.listed) node(ir().unlisted_end(o), out, depth + 1);
        for (const auto &[character, to] : place.forks) {
            w.op(Code::Seq);
            w.number(2);
            w.op(Code::Chars);
            w.ranges({{character, character}});
            if (length < kMaxTrieDepth) {
                self(self, to, out, length + 1);
            } else {
                pending.emplace_back(to, anonymous({}));
                w.op(Code::Call);
                out.gaps.push_back({out.code.size(), pending.back().second});
            }
        }
        w.op(Code::Seq);
        w.number(2);
        w.op(Code::Chars);
        w.ranges(leaving(ranges, place));
        node(rest, out, depth + 1);
        node(other, out, depth + 1);
        out.weight += 4;
    };
    write(write, 0, d, 0);
    while (!pending.empty()) {
        const auto [at, made] = pending.back();
        pending.pop_back();
        write(write, at, drafts_[made], 0);
        settle_count(drafts_[made]);
    }
}

}  // namespace dovetail
