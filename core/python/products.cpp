#include "products.h"

#include <algorithm>

#include "nodes.h"
#include "product.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxCode = 0x10FFFF;
constexpr uint64_t kMaxTimes = 1u << 30;
constexpr size_t kMaxDepth = 1'000;

/// The classes of dovetail.grammar.regex.syntax and their fields, looked up once.
struct Syntax {
    nb::module_ module = nb::module_::import_("dovetail.grammar.regex.syntax");
    nb::object cat = module.attr("Cat"), any = module.attr("Or"), rep = module.attr("Rep");
    nb::object words = module.attr("Words"), but = module.attr("But");
    nb::object nothing = module.attr("NOTHING"), any_char = nb::module_::import_("dovetail.grammar.ir").attr("ANY_CHAR");
    Field cat_parts{cat, "parts"}, any_parts{any, "parts"}, words_words{words, "words"};
    Field rep_body{rep, "body"}, rep_low{rep, "low"}, rep_high{rep, "high"};
};

const Syntax &syntax() {
    static const Syntax *names = new Syntax;  // never freed, as `ir`
    return *names;
}

uint32_t count_of(nb::handle o) {
    return o.is_none() ? kNone : static_cast<uint32_t>(number_of(o, kMaxTimes, "the count of a repetition"));
}

nb::object count_to(uint32_t count) { return count == kNone ? nb::none() : nb::object(nb::int_(count)); }

Ranges ranges_of(nb::handle list) {
    Ranges found;
    each(list, [&](nb::handle range) {
        if (length(range) != 2) throw InputError("a range of characters has two ends");
        const auto end = [&](Py_ssize_t at) {
            return static_cast<uint32_t>(number_of(PyTuple_GET_ITEM(range.ptr(), at), kMaxCode, "a character"));
        };
        found.emplace_back(end(0), end(1));
    });
    return found;
}

nb::object ranges_to(const Ranges &ranges) {
    nb::list found;
    for (const auto &[low, high] : ranges) found.append(nb::make_tuple(low, high));
    return nb::tuple(found);
}

nb::object mask_to(const Symbols &symbols) {
    const std::vector<uint64_t> words = symbols.words();
    nb::object found = nb::int_(words.back());
    for (size_t at = words.size() - 1; at-- > 0;) found = (found << nb::int_(64)) | nb::int_(words[at]);
    return found;
}

nb::list symbols_to(const Alphabet &alphabet) {
    nb::list found;
    for (const Ranges &ranges : alphabet.symbols) found.append(ranges_to(ranges));
    return found;
}

std::u32string text_to(nb::handle word) {
    if (!PyUnicode_Check(word.ptr())) throw InputError("a word is a string");
    std::u32string found(static_cast<size_t>(PyUnicode_GET_LENGTH(word.ptr())), 0);
    for (size_t at = 0; at < found.size(); ++at) found[at] = PyUnicode_READ_CHAR(word.ptr(), static_cast<Py_ssize_t>(at));
    return found;
}

nb::object text_from(const std::u32string &text) {
    return nb::steal(PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, text.data(), static_cast<Py_ssize_t>(text.size())));
}

/// Patterns read from Python, and back to it.
class Reading {
  public:
    explicit Reading(const nb::callable &read) : read_(read) {}

    std::vector<uint32_t> all(const nb::list &list) {
        std::vector<uint32_t> found;
        for (nb::handle one : list) found.push_back(pattern(one, 0));
        return found;
    }

    /// The bodies of all rules that are called.
    void finish() {
        for (size_t at = 0; at < rules_.size(); ++at) {
            const auto [rule, number] = rules_[at];
            bodies_.push_back(read_(ir().rule_body(rule)));
            patterns.set_body(number, pattern(bodies_.back(), 0));
        }
    }

    nb::object object(uint32_t pattern) {
        if (pattern >= objects_.size()) objects_.resize(patterns.size());
        if (!objects_[pattern].is_valid()) {
            // What is left of a repetition; all else was read.
            const Patterns::Pattern made = patterns[pattern];
            objects_[pattern] = syntax().rep(object(made.parts[0]), made.low, count_to(made.high));
        }
        return objects_[pattern];
    }

    Patterns patterns;

  private:
    uint32_t pattern(nb::handle node, size_t depth) {
        const auto known = numbers_.find(node.ptr());
        if (known != numbers_.end()) return known->second;
        if (depth > kMaxDepth) throw LimitError("the pattern is nested too deeply");
        const uint32_t found = made(node, depth + 1);
        if (found >= objects_.size()) objects_.resize(found + 1);
        if (!objects_[found].is_valid()) objects_[found] = nb::borrow(node);
        numbers_.emplace(node.ptr(), found);
        return found;
    }

    uint32_t made(nb::handle node, size_t depth) {
        const Syntax &classes = syntax();
        const nb::handle type = node.type();
        if (type.is(ir().chars)) return patterns.chars(ranges_of(ir().chars_ranges(node)));
        if (type.is(classes.cat)) return patterns.cat(parts(classes.cat_parts(node), depth));
        if (type.is(classes.any)) return patterns.any(parts(classes.any_parts(node), depth));
        if (type.is(classes.rep)) {
            const uint32_t body = pattern(classes.rep_body(node), depth);
            return patterns.repeat(body, count_of(classes.rep_low(node)), count_of(classes.rep_high(node)));
        }
        if (type.is(ir().call)) return rule(ir().call_rule(node));
        if (type.is(classes.words)) return words(classes.words_words(node));
        throw InputError("assertions are resolved before patterns are combined");
    }

    std::vector<uint32_t> parts(nb::handle tuple, size_t depth) {
        std::vector<uint32_t> found;
        each(tuple, [&](nb::handle part) { found.push_back(pattern(part, depth)); });
        return found;
    }

    uint32_t rule(nb::handle rule) {
        const auto [found, is_new] = rule_numbers_.try_emplace(rule.ptr(), 0);
        if (is_new) {
            found->second = patterns.rule();
            rules_.emplace_back(rule, found->second);
        }
        return found->second;
    }

    uint32_t words(nb::handle tuple) {
        std::vector<std::u32string> found;
        each(tuple, [&](nb::handle word) { found.push_back(text_to(word)); });
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return patterns.words(found);
    }

    nb::callable read_;
    std::unordered_map<PyObject *, uint32_t> numbers_, rule_numbers_;
    std::vector<nb::object> objects_;  // by pattern
    std::vector<std::pair<nb::handle, uint32_t>> rules_;
    std::vector<nb::object> bodies_;  // which keep their identities
};

/// Exits as patterns of Python.
class Leaving : public Exits {
  public:
    Leaving(Reading &reading, const Terms &terms, const nb::callable &narrow)
        : reading_(reading), terms_(terms), narrow_(narrow) {}

    uint32_t rest(uint32_t term, uint32_t low, uint32_t high) override {
        const auto [known, is_new] = rests_.try_emplace(term, 0);
        if (is_new) known->second = add(pattern(term));
        if (!low && high == kNone) return known->second;
        nb::object found = narrow_(objects_[known->second], low, count_to(high));
        if (found.is_none()) return kStuck;
        return found.equal(syntax().nothing) ? kNothing : add(std::move(found));
    }

    uint32_t anything(uint32_t low, uint32_t high) override {
        const auto [known, is_new] = anything_.try_emplace(uint64_t{low} << 32 | high, 0);
        if (is_new) known->second = add(syntax().rep(syntax().any_char, low, count_to(high)));
        return known->second;
    }

    uint32_t other_than(uint32_t words) override {
        const auto [known, is_new] = words_.try_emplace(words, 0);
        if (is_new) {
            nb::list texts;
            for (const std::u32string &text : reading_.patterns.texts(words)) texts.append(text_from(text));
            known->second = add(syntax().but(nb::tuple(texts)));
        }
        return known->second;
    }

    nb::object operator[](uint32_t at) const { return objects_[at]; }

  private:
    uint32_t add(nb::object found) {
        objects_.push_back(std::move(found));
        return static_cast<uint32_t>(objects_.size() - 1);
    }

    /// What is left, as one flat sequence.
    nb::object pattern(uint32_t term) {
        nb::list parts;
        for (; term != Terms::kEnd; term = terms_[term].rest) {
            const uint32_t at = terms_[term].pattern;
            if (reading_.patterns[at].kind == Patterns::Kind::kCat) parts.extend(reading_.object(at).attr("parts"));
            else parts.append(reading_.object(at));
        }
        return nb::len(parts) == 1 ? nb::object(parts[0]) : syntax().cat(nb::tuple(parts));
    }

    Reading &reading_;
    const Terms &terms_;
    const nb::callable &narrow_;
    std::vector<nb::object> objects_;
    std::unordered_map<uint32_t, uint32_t> rests_, words_;
    std::unordered_map<uint64_t, uint32_t> anything_;
};

}  // namespace

nb::tuple product(nb::list wanted, nb::list barred, nb::callable read, nb::callable narrow, nb::tuple limits, bool split,
                  bool exits, size_t most) {
    Reading reading(read);
    const std::vector<uint32_t> all = reading.all(wanted), none = reading.all(barred);
    reading.finish();
    Terms terms(reading.patterns);
    Leaving leaving(reading, terms, narrow);
    Product found(terms, all, none, split, exits ? &leaving : nullptr);
    const Together together = found.run(count_of(limits[0]), count_of(limits[1]), most);
    nb::list edges;
    nb::set accepting;
    nb::dict left;
    for (size_t at = 0; at < together.states.size(); ++at) {
        const Together::State &state = together.states[at];
        nb::dict targets;
        for (const Together::Edge &edge : state.edges) targets[nb::int_(edge.target)] = mask_to(edge.symbols);
        edges.append(targets);
        if (state.accepting) accepting.add(nb::int_(at));
        if (state.exits.empty()) continue;
        nb::list patterns;
        for (const uint32_t one : state.exits) patterns.append(leaving[one]);
        left[nb::int_(at)] = nb::tuple(patterns);
    }
    return nb::make_tuple(symbols_to(terms.alphabet()), edges, accepting, left);
}

nb::tuple alphabet(nb::list classes) {
    std::vector<Ranges> given;
    for (nb::handle one : classes) given.push_back(ranges_of(one));
    const Alphabet found(given);
    nb::list masks;
    for (const Symbols &symbols : found.classes) masks.append(mask_to(symbols));
    return nb::make_tuple(symbols_to(found), masks);
}

}  // namespace dovetail
