// Choices between words, and words in whatever spelling.
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
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(parts.ptr()); ++i) node(PyTuple_GET_ITEM(parts.ptr(), i), d, depth + 1);
}

void Encoder::spelled(nb::handle o, Draft &d) {
    const nb::handle text = ir().spelled_text(o), table = ir().spelled_spellings(o);
    if (!PyUnicode_Check(text.ptr())) throw InputError("a spelled text is a string");
    const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
    Spellings &spellings = spellings_of(table);
    CodeWriter w(d.code);
    w.op(Code::Spelled);
    w.text(bytes_of(ir().spelled_quote(o)));
    d.code.push_back(spellings.lead);
    w.number(static_cast<uint64_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
        const auto &[raw, callee] = spelling(spellings, table, PyUnicode_READ_CHAR(text.ptr(), i));
        d.code.push_back(raw);
        d.gaps.push_back({d.code.size(), callee, true});
    }
    d.weight += 2 * static_cast<size_t>(size);
}

void Encoder::unlisted(nb::handle o, Draft &d, size_t depth) {
    const nb::handle table = ir().unlisted_spellings(o);
    Spellings &spellings = spellings_of(table);
    const std::vector<WordPlace> trie = word_trie(ir().unlisted_words(o));
    CodeWriter w(d.code);
    w.op(Code::Unlisted);
    d.code.push_back(spellings.lead);
    const nb::object plain = table.attr("plain"), others = table.attr("others");
    range_list(ir().chars_ranges(plain), 0x10FFFF, w);
    w.number(trie.size());
    // Each place was made after the one that leads to it.
    for (size_t at = trie.size(); at-- > 0;) {
        std::string forks;
        d.code.push_back(trie[at].listed ? 1 : 0);
        w.number(trie[at].forks.size());
        for (const auto &[letter, to] : trie[at].forks) {
            const auto &[raw, callee] = spelling(spellings, table, static_cast<uint8_t>(letter));
            if (raw == spellings.lead) throw InputError("the plain spelling of a letter begins other spellings");
            d.code.push_back(raw);
            d.gaps.push_back({d.code.size(), callee, true});
            w.number(trie.size() - 1 - to);
            forks.push_back(letter);
        }
        d.gaps.push_back({d.code.size(), other_spelling(spellings, others, forks), true});
    }
    d.weight += 4 * trie.size();
    node(ir().unlisted_tail(o), d, depth + 1);
    node(ir().unlisted_end(o), d, depth + 1);
}

/// How a table writes the characters that are none of `letters`, which are sorted.
uint32_t Encoder::other_spelling(Spellings &spellings, nb::handle others, const std::string &letters) {
    const auto [known, fresh] = spellings.others.try_emplace(letters, kNone);
    if (fresh) {
        const nb::str key(letters.data(), letters.size());
        const nb::object found = nb::steal(PyObject_GetItem(others.ptr(), key.ptr()));
        if (!found.is_valid()) throw nb::python_error();
        known->second = rule(found);
    }
    return known->second;
}

Spellings &Encoder::spellings_of(nb::handle table) {
    for (Spellings &known : spellings_)
        if (known.table == table.ptr()) return known;
    const nb::object lead_object = table.attr("lead");
    const std::string_view lead = bytes_of(lead_object);
    if (lead.size() != 1) throw InputError("other spellings of a character begin with one byte");
    return spellings_.emplace_back(table.ptr(), lead[0]);
}

/// How a table writes a character; each stands in a grammar many times.
const Spellings::Letter &Encoder::spelling(Spellings &spellings, nb::handle table, Py_UCS4 code) {
    if (code >= 128) throw InputError("only ASCII characters are spelled");
    Spellings::Letter &letter = spellings.letters[code];
    if (letter.callee == kNone) {
        const nb::object character = nb::steal(PyUnicode_FromOrdinal(static_cast<int>(code)));
        if (!character.is_valid()) throw nb::python_error();
        const nb::object written = nb::steal(PyObject_GetItem(table.ptr(), character.ptr()));
        if (!written.is_valid()) throw nb::python_error();
        if (length(written) != 2) throw InputError("a spelling is a pair");
        const std::string_view raw = bytes_of(PyTuple_GET_ITEM(written.ptr(), 0));
        if (raw.size() > 1) throw InputError("the plain spelling of a character is one byte");
        letter = {raw.empty() ? '\0' : raw[0], rule(PyTuple_GET_ITEM(written.ptr(), 1))};
    }
    return letter;
}

}  // namespace dovetail
