// Choices between words, and words in whatever spelling.
#include <map>
#include <set>
#include <tuple>

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
    const nb::handle text = ir().spelled_text(o);
    if (!PyUnicode_Check(text.ptr())) throw InputError("a spelled text is a string");
    const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
    Spellings &spellings = spellings_of(ir().spelled_spellings(o));
    CodeWriter w(d.code);
    w.op(Code::Spelled);
    w.text(bytes_of(ir().spelled_quote(o)));
    d.code.push_back(spellings.kept->lead);
    w.number(static_cast<uint64_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
        const auto [raw, callee] = spelling(spellings, PyUnicode_READ_CHAR(text.ptr(), i));
        d.code.push_back(raw);
        d.gaps.push_back({d.code.size(), callee, true});
    }
    d.weight += 2 * static_cast<size_t>(size);
}

void Encoder::unlisted(nb::handle o, Draft &d, size_t depth) {
    Spellings &spellings = spellings_of(ir().unlisted_spellings(o));
    const std::vector<WordPlace> trie = word_trie(ir().unlisted_words(o));
    const char lead = spellings.kept->lead;
    CodeWriter w(d.code);
    w.op(Code::Unlisted);
    d.code.push_back(lead);
    d.code += spellings.kept->plain;
    w.number(trie.size());
    // Each place was made after the one that leads to it.
    for (size_t at = trie.size(); at-- > 0;) {
        std::string forks;
        d.code.push_back(trie[at].listed ? 1 : 0);
        w.number(trie[at].forks.size());
        for (const auto &[letter, to] : trie[at].forks) {
            const auto [raw, callee] = spelling(spellings, static_cast<uint8_t>(letter));
            if (raw == lead) throw InputError("the plain spelling of a letter begins other spellings");
            d.code.push_back(raw);
            d.gaps.push_back({d.code.size(), callee, true});
            w.number(trie.size() - 1 - to);
            forks.push_back(letter);
        }
        d.gaps.push_back({d.code.size(), other_spelling(spellings, forks), true});
    }
    d.weight += 4 * trie.size();
    node(ir().unlisted_tail(o), d, depth + 1);
    node(ir().unlisted_end(o), d, depth + 1);
}

Spellings &Encoder::spellings_of(nb::handle table) {
    for (Spellings &known : spellings_)
        if (known.table == table.ptr()) return known;
    if (!PyObject_TypeCheck(table.ptr(), reinterpret_cast<PyTypeObject *>(ir().spellings.ptr())))
        throw InputError("spellings are a dovetail.grammar.ir.Spellings");
    SpellingTable *kept = SpellingTable::of(table);
    if (!kept) {
        const std::string_view lead = bytes_of(ir().spellings_lead(table));
        if (lead.size() != 1) throw InputError("other spellings of a character begin with one byte");
        const nb::handle plain = ir().spellings_plain(table);
        if (!is_a(plain, ir().chars)) throw InputError("the characters that may stand as they are must be Chars");
        std::string code;
        CodeWriter w(code);
        range_list(ir().chars_ranges(plain), 0x10FFFF, w);
        kept = SpellingTable::make(table);
        kept->lead = lead[0];
        kept->plain = std::move(code);
    }
    return spellings_.emplace_back(table.ptr(), kept);
}

namespace {

nb::object item_of(nb::handle mapping, nb::handle key) {
    nb::object found = nb::steal(PyObject_GetItem(mapping.ptr(), key.ptr()));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

/// One of some characters.
void one_of(const std::set<uint64_t> &codes, CodeWriter &w) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const uint64_t code : codes) {
        if (!ranges.empty() && ranges.back().second + 1 == code) ranges.back().second = code;
        else ranges.emplace_back(code, code);
    }
    w.op(Code::Chars);
    w.number(ranges.size());
    for (const auto &[low, high] : ranges) {
        w.number(low);
        w.number(high);
    }
}

/// One hexadecimal digit of those whose bits are set, in either case.
void hexadecimal(uint32_t digits, CodeWriter &w) {
    std::set<uint64_t> codes;
    for (uint32_t digit = 0; digit < 16; ++digit)
        if (digits >> digit & 1)
            for (const char *spellings : {"0123456789abcdef", "0123456789ABCDEF"}) codes.insert(static_cast<uint8_t>(spellings[digit]));
    one_of(codes, w);
}

}  // namespace

/// How a table of codes writes the characters that are none of `letters`: most objects have letters of their own.
uint32_t Encoder::other_codes(nb::handle codes, const std::string &letters) {
    if (!is_a(codes, ir().codes)) throw InputError("codes are a dovetail.grammar.ir.Codes");
    uint32_t rows[8];  // by the first digit, a bit for each second one
    std::fill(std::begin(rows), std::end(rows), 0xFFFFu);
    for (const char letter : letters) rows[letter >> 4] &= ~(1u << (letter & 15));
    std::map<uint32_t, uint32_t> alike;  // rows, by their second digits
    for (uint32_t row = 0; row < 8; ++row)
        if (rows[row]) alike[rows[row]] |= 1u << row;
    std::set<uint64_t> bytes;
    each(ir().codes_short(codes), [&](nb::handle pair) {
        if (length(pair) != 2) throw InputError("a short code is a pair");
        const uint64_t code = number_of(PyTuple_GET_ITEM(pair.ptr(), 0), 127, "a short code");
        if (rows[code >> 4] >> (code & 15) & 1) bytes.insert(number_of(PyTuple_GET_ITEM(pair.ptr(), 1), 127, "a short code"));
    });
    Draft d;
    CodeWriter w(d.code);
    w.op(Code::Alt);
    w.number(3);
    one_of(bytes, w);
    w.op(Code::Seq);
    w.number(2);
    w.op(Code::Lit);
    w.text(bytes_of(ir().codes_lead(codes)));
    w.op(Code::Alt);
    w.number(alike.size());
    for (const auto &[second, first] : alike) {
        w.op(Code::Seq);
        w.number(2);
        hexadecimal(first, w);
        hexadecimal(second, w);
    }
    d.weight += 4 + 3 * alike.size();
    node(ir().codes_beyond(codes), d, 0);
    return anonymous(std::move(d));
}

/// How a table writes the characters that are none of `letters`, which are sorted.
uint32_t Encoder::other_spelling(Spellings &spellings, const std::string &letters) {
    const nb::handle others = ir().spellings_others(spellings.table);
    const auto find = [&] { return item_of(others, nb::str(letters.data(), letters.size())); };
    if (letters.size() > 1) {
        const auto [known, fresh] = spellings.rare.try_emplace(letters, kNone);
        if (!fresh) return known->second;
        const nb::handle codes = ir().spellings_codes(spellings.table);
        return known->second = codes.is_none() ? rule(find()) : other_codes(codes, letters);
    }
    const size_t at = letters.empty() ? 128 : static_cast<uint8_t>(letters[0]);
    uint32_t &callee = spellings.others[at];
    Compiled &kept = spellings.kept->others[at];
    if (callee == kNone) callee = kept_rule(kept);
    if (callee == kNone) callee = spelling_rule(kept, find());
    return callee;
}

/// How a table writes a character; each stands in a grammar many times.
std::pair<char, uint32_t> Encoder::spelling(Spellings &spellings, Py_UCS4 code) {
    if (code >= 128) throw InputError("only ASCII characters are spelled");
    uint32_t &callee = spellings.letters[code];
    auto &[raw, kept] = spellings.kept->letters[code];
    if (callee == kNone) callee = kept_rule(kept);
    if (callee == kNone) {
        const nb::object character = nb::steal(PyUnicode_FromOrdinal(static_cast<int>(code)));
        if (!character.is_valid()) throw nb::python_error();
        const nb::object written = item_of(spellings.table, character);
        if (length(written) != 2) throw InputError("a spelling is a pair");
        const std::string_view plain = bytes_of(PyTuple_GET_ITEM(written.ptr(), 0));
        if (plain.size() > 1) throw InputError("the plain spelling of a character is one byte");
        raw = plain.empty() ? '\0' : plain[0];
        callee = spelling_rule(kept, PyTuple_GET_ITEM(written.ptr(), 1));
    }
    return {raw, callee};
}

/// The rule that a table keeps; kNone where the store has none, or not any more.
uint32_t Encoder::kept_rule(const Compiled &kept) {
    Draft draft;
    return recall(&kept, draft) ? anonymous(std::move(draft)) : kNone;
}

/// A rule of a table, kept for the next grammar. Nearly every grammar calls dozens of them, so they last.
uint32_t Encoder::spelling_rule(Compiled &kept, nb::handle object) {
    const uint32_t callee = rule(object);
    if (drafts_[callee].known) {
        kept = *Compiled::of(object);
    } else {
        drafts_[callee].lasts = true;
        unkept_.emplace_back(&kept, callee);
    }
    return callee;
}

}  // namespace dovetail
