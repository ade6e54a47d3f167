#include "encode.h"

#include <list>
#include <map>
#include <unordered_map>

#include "choices.h"
#include "compiled.h"
#include "nodes.h"
#include "spellings.h"

namespace dovetail {

namespace {

constexpr size_t kUnrollWeight = 12;  // states; copies up to this are cheaper than a counter
constexpr size_t kUnrollAfterLoop = 512;  // behind a loop, where several counts would be under way at once
constexpr uint64_t kMaxCount = 1u << 30;

/// Code in the making: what depends on other rules is filled in at the end.
struct Draft {
    struct Gap {
        size_t at;        // in `code`
        uint32_t callee;  // its slot goes here
        bool bare = false;  // without bounds
    };
    std::string code;
    std::vector<Gap> gaps;
    Rule *known = nullptr;        // instead of all that
    uint32_t held = 0;            // where it is kept alive
    Counter init{kUnbounded, 0};  // what callers pass
    size_t weight = 0;            // states, roughly
    int counts = 0;               // Count nodes
    bool loops = false;           // something before repeats without bound
    size_t count_at = std::string::npos, count_size = 0;  // one that callers may parametrise
    Counter count_bounds;

    /// Appends another draft of the same rule.
    void append(const Draft &other) {
        const size_t base = code.size();
        code += other.code;
        for (const Gap &g : other.gaps) gaps.push_back({g.at + base, g.callee, g.bare});
        weight += other.weight;
        counts += other.counts;
        loops = loops || other.loops;
        if (other.count_at == std::string::npos) return;
        count_at = other.count_at + base;
        count_size = other.count_size;
        count_bounds = other.count_bounds;
    }
};

class Encoder {
  public:
    explicit Encoder(Store &store) : store_(store) {}
    ~Encoder() {
        if (!held_.empty()) store_.release(std::move(held_));
    }
    Encoder(const Encoder &) = delete;

    Program run(nb::handle root) {
        rule(root);
        while (!pending_.empty()) {
            const auto [index, object] = pending_.back();
            pending_.pop_back();
            Draft draft;
            node(ir().rule_body(object), draft, 0);
            settle_count(draft);
            drafts_[index] = std::move(draft);
        }
        return assemble();
    }

    /// Notes on the rules what they have become.
    void note(const std::vector<KnownRule> &places) const {
        for (const auto &[object, index] : indices_)
            if (!drafts_[index].known) Compiled::set(object, {&store_, places[index], drafts_[index].init});
    }

  private:
    uint32_t rule(nb::handle object) {
        if (!is_a(object, ir().rule))
            throw InputError("a grammar is a dovetail.grammar.ir.Rule");
        const auto [it, fresh] = indices_.try_emplace(object.ptr(), static_cast<uint32_t>(drafts_.size()));
        if (fresh) {
            make_room();
            drafts_.emplace_back();
            if (it->second == 0 || !is_known(object, drafts_.back())) pending_.emplace_back(it->second, nb::borrow(object));
        }
        return it->second;
    }

    bool is_known(nb::handle object, Draft &draft) {
        const Compiled *compiled = Compiled::of(object);
        if (!compiled || compiled->store != &store_) return false;
        std::shared_ptr<Unit> unit = compiled->known.unit.lock();
        if (!unit) return false;
        draft.held = static_cast<uint32_t>(held_.size());
        held_.push_back(std::move(unit));
        draft.known = compiled->known.rule;
        draft.init = compiled->init;
        return true;
    }

    uint32_t anonymous(Draft draft) {
        make_room();
        drafts_.push_back(std::move(draft));
        return static_cast<uint32_t>(drafts_.size() - 1);
    }

    void make_room() const {
        if (drafts_.size() >= kMaxRules) throw LimitError("a grammar has more than 1,048,576 rules");
    }

    /// Where a rule counts once, its callers pass the bounds: rules that differ in them alone become one. A rule that
    /// calls others may be left-recursive, and then it counts more than once in one frame.
    static void settle_count(Draft &d) {
        if (d.counts != 1 || d.count_at == std::string::npos || !d.gaps.empty()) return;
        d.init = d.count_bounds;
        d.code.replace(d.count_at, d.count_size, 1, static_cast<char>(Code::CountParam));
    }

    void node(nb::handle o, Draft &d, size_t depth) {
        if (depth > kMaxDepth) throw LimitError("grammar nodes are nested deeper than 2000 levels");
        if (d.code.size() > kMaxCodeBytes) throw LimitError("a rule is larger than 64 MiB");
        const nb::handle type = reinterpret_cast<PyObject *>(Py_TYPE(o.ptr()));
        const Ir &names = ir();
        if (type.is(names.lit)) {
            const std::string_view data = bytes_of(names.lit_data(o));
            CodeWriter w(d.code);
            w.op(names.lit_special(o).ptr() == Py_True ? Code::Special : Code::Lit);
            w.text(data);
            d.weight += data.size();
        } else if (type.is(names.spelled)) {
            spelled(o, d);
        } else if (type.is(names.unlisted)) {
            unlisted(o, d, depth);
        } else if (type.is(names.seq)) {
            several(Code::Seq, names.seq_parts(o), d, depth);
        } else if (type.is(names.alt)) {
            choice(names.alt_parts(o), d, depth);
        } else if (type.is(names.call)) {
            CodeWriter(d.code).op(Code::Call);
            d.gaps.push_back({d.code.size(), rule(names.call_rule(o))});
            d.weight += 2;
        } else if (type.is(names.repeat)) {
            repeat(o, d, depth);
        } else if (type.is(names.chars)) {
            ranges(names.chars_ranges(o), true, d);
        } else if (type.is(names.bytes)) {
            ranges(names.bytes_ranges(o), false, d);
        } else if (type.is(names.text)) {
            text(o, d, depth);
        } else if (type.is(names.new_key)) {
            CodeWriter(d.code).op(Code::NewKey);
            d.code.push_back(names.new_key_grows(o).ptr() == Py_True);
            ++d.weight;
        } else if (type.is(names.any_order)) {
            any_order(o, d, depth);
        } else if (type.is(names.measured)) {
            measured(o, d, depth);
        } else if (type.is(names.capture)) {
            capture(o, d, depth);
        } else if (type.is(names.tokens)) {
            tokens(o, d);
        } else if (type.is(names.without)) {
            const nb::handle excludes = names.without_excludes(o);
            CodeWriter w(d.code);
            w.op(Code::Without);
            w.number(length(excludes));
            each(excludes, [&](nb::handle s) { w.text(bytes_of(s)); });
            d.weight += 4 * kUnrollWeight;
            ++inside_without_;
            node(names.without_body(o), d, depth + 1);
            --inside_without_;
        } else {
            throw InputError("not a grammar node: " + std::string(nb::repr(o).c_str()).substr(0, 200));
        }
    }

    void several(Code op, nb::handle parts, Draft &d, size_t depth) {
        CodeWriter w(d.code);
        w.op(op);
        w.number(length(parts));
        ++d.weight;
        each(parts, [&](nb::handle part) { node(part, d, depth + 1); });
    }

    /// Choices that begin with a word under the same captures are one call, which tells by its exit which word it was:
    /// else each of a thousand tools would have a stack of its own.
    void choice(nb::handle parts, Draft &d, size_t depth) {
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

    void words(const std::vector<Named> &group, Draft &d, size_t depth) {
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
    void rest(nb::handle part, Draft &d, size_t depth) {
        CodeWriter w(d.code);
        w.op(Code::Seq);
        if (!is_a(part, ir().seq)) return w.number(0);
        const nb::handle parts = ir().seq_parts(part);
        w.number(length(parts) - 1);
        for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(parts.ptr()); ++i) node(PyTuple_GET_ITEM(parts.ptr(), i), d, depth + 1);
    }

    void spelled(nb::handle o, Draft &d) {
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

    void unlisted(nb::handle o, Draft &d, size_t depth) {
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
    uint32_t other_spelling(Spellings &spellings, nb::handle others, const std::string &letters) {
        const auto [known, fresh] = spellings.others.try_emplace(letters, kNone);
        if (fresh) {
            const nb::str key(letters.data(), letters.size());
            const nb::object found = nb::steal(PyObject_GetItem(others.ptr(), key.ptr()));
            if (!found.is_valid()) throw nb::python_error();
            known->second = rule(found);
        }
        return known->second;
    }

    Spellings &spellings_of(nb::handle table) {
        for (Spellings &known : spellings_)
            if (known.table == table.ptr()) return known;
        const nb::object lead_object = table.attr("lead");
        const std::string_view lead = bytes_of(lead_object);
        if (lead.size() != 1) throw InputError("other spellings of a character begin with one byte");
        return spellings_.emplace_back(table.ptr(), lead[0]);
    }

    /// How a table writes a character; each stands in a grammar many times.
    const Spellings::Letter &spelling(Spellings &spellings, nb::handle table, Py_UCS4 code) {
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

    void ranges(nb::handle list, bool is_chars, Draft &d) {
        CodeWriter w(d.code);
        w.op(is_chars ? Code::Chars : Code::Bytes);
        d.weight += range_list(list, is_chars ? 0x10FFFF : 0xFF, w) > 0x80 ? 4 : 1;
    }

    /// Where the last range ends.
    static uint64_t range_list(nb::handle list, uint64_t limit, CodeWriter &w) {
        w.number(length(list));
        uint64_t next = 0;
        each(list, [&](nb::handle pair) {
            if (length(pair) != 2) throw InputError("a range is a pair");
            const uint64_t low = number_of(PyTuple_GET_ITEM(pair.ptr(), 0), limit, "the start of a range");
            const uint64_t high = number_of(PyTuple_GET_ITEM(pair.ptr(), 1), limit, "the end of a range");
            if (low > high || low < next) throw InputError("ranges must be sorted and disjoint");
            next = high + 1;
            w.number(low);
            w.number(high);
        });
        return next;
    }

    void repeat(nb::handle o, Draft &d, size_t depth) {
        const uint64_t low = number_of(ir().repeat_low(o), kMaxCount, "the lower bound of a repetition");
        const nb::handle high_object = ir().repeat_high(o);
        const bool unbounded = high_object.is_none();
        const uint64_t high = unbounded ? 0 : number_of(high_object, kMaxCount, "the upper bound of a repetition");
        if (!unbounded && high < low) throw InputError("a repetition has its bounds reversed");
        const Counter bounds{unbounded ? kUnbounded : static_cast<uint32_t>(high), static_cast<uint32_t>(low)};
        CodeWriter w(d.code);
        if (!unbounded && high == 0) {
            w.op(Code::Seq);
            w.number(0);
            return;
        }
        const uint64_t copies = unbounded ? low : high;
        if (copies <= 1) {
            // Options and loops, which are most repetitions, need no look at their body first.
            w.op(unbounded ? Code::Loop : Code::Unroll);
            if (unbounded) w.number(low);
            else w.bounds(bounds);
            const int counts = d.counts;
            node(ir().repeat_body(o), d, depth + 1);
            if (unbounded && d.counts != counts) d.count_at = std::string::npos;  // entered more than once
            d.loops = d.loops || unbounded;
            ++d.weight;
            return;
        }
        Draft body;
        body.loops = d.loops;
        node(ir().repeat_body(o), body, depth + 1);
        const bool searched = d.loops && low > 0;
        const size_t limit = searched ? kUnrollAfterLoop : kUnrollWeight;
        // Where strings are excluded, what may still come depends on the count too, so the count is part of the state.
        const bool small = copies * std::max<size_t>(body.weight, 1) <= limit || inside_without_ > 0;
        if (small && unbounded) {
            w.op(Code::Loop);
            w.number(low);
        } else if (small) {
            w.op(Code::Unroll);
            w.bounds(bounds);
        } else {
            return count(std::move(body), bounds, d);
        }
        body.count_at = std::string::npos;
        body.loops = body.loops || unbounded;
        body.weight = std::max<size_t>(body.weight, 1) * copies + 1;
        d.append(body);
    }

    void count(Draft body, Counter bounds, Draft &d) {
        if (body.counts > 0) {
            // A frame has one counter, so the repeated part gets a frame of its own.
            settle_count(body);
            const uint32_t callee = anonymous(std::move(body));
            body = Draft();
            body.code.push_back(static_cast<char>(Code::Call));
            body.gaps.push_back({1, callee});
            body.weight = 2;
        }
        const size_t at = d.code.size();
        CodeWriter w(d.code);
        w.op(Code::Count);
        w.bounds(bounds);
        const size_t size = d.code.size() - at;
        d.append(body);
        d.weight += 3;
        ++d.counts;
        d.count_at = at;
        d.count_size = size;
        d.count_bounds = bounds;
    }

    void capture(nb::handle o, Draft &d, size_t depth) {
        Draft body;
        node(ir().capture_body(o), body, depth + 1);
        settle_count(body);
        const uint32_t callee = anonymous(std::move(body));
        branch(callee, {text_of(ir().capture_name(o))}, d);
        CodeWriter w(d.code);
        w.number(1);  // one arm: go on
        w.number(1);
        w.number(0);
        w.op(Code::Seq);
        w.number(0);
    }

    /// Its frame keeps a set where others keep a count, so it is a rule of its own and its parts count in theirs.
    void any_order(nb::handle o, Draft &d, size_t depth) {
        const Ir &names = ir();
        const nb::handle members = names.any_members(o), extra = names.any_extra(o);
        if (length(members) > kMaxMembers) throw LimitError("more than 4096 members in any order");
        Draft body;
        body.init = {};
        CodeWriter w(body.code);
        w.op(Code::AnyOrder);
        w.number(names.any_started(o).ptr() == Py_True);
        w.number(length(members));
        each(members, [&](nb::handle pair) {
            if (length(pair) != 2) throw InputError("a member is a pair of a node and whether it is required");
            w.number(PyTuple_GET_ITEM(pair.ptr(), 1) == Py_True);
            part(PyTuple_GET_ITEM(pair.ptr(), 0), body, depth);
        });
        w.number(!extra.is_none());
        if (!extra.is_none()) part(extra, body, depth);
        part(names.any_separator(o), body, depth);
        part(names.any_close(o), body, depth);
        const uint32_t callee = anonymous(std::move(body));
        CodeWriter(d.code).op(Code::Call);
        d.gaps.push_back({d.code.size(), callee});
        d.weight += 2;
    }

    /// Its frame counts characters, so it is a rule of its own; texts that differ in their limits alone are one.
    void measured(nb::handle o, Draft &d, size_t depth) {
        const Ir &names = ir();
        const nb::handle states = names.measured_states(o), high = names.measured_high(o);
        const uint64_t count = length(states);
        const auto state_number = [&](nb::handle n) {
            return number_of(n, count == 0 ? 0 : count - 1, "a state of measured text");
        };
        const uint64_t start = state_number(names.measured_start(o));
        Draft body;
        body.init.need = static_cast<uint32_t>(number_of(names.measured_low(o), kMaxCount, "the fewest characters"));
        if (!high.is_none()) body.init.left = static_cast<uint32_t>(number_of(high, kMaxCount, "the most characters")) + 1;
        if (body.init.need >= body.init.left) throw InputError("measured text has its bounds reversed");
        CodeWriter w(body.code);
        w.op(Code::Measured);
        w.text(bytes_of(names.measured_end(o)));
        w.number(count);
        // The start comes first, in the place of the first state.
        const auto place = [&](uint64_t state) { return state == start ? 0 : state == 0 ? start : state; };
        for (uint64_t k = 0; k < count; ++k) {
            const nb::handle state = PyTuple_GET_ITEM(states.ptr(), static_cast<Py_ssize_t>(place(k)));
            if (length(state) != 2) throw InputError("a state of measured text is a pair");
            const nb::handle edges = PyTuple_GET_ITEM(state.ptr(), 0);
            w.number(PyTuple_GET_ITEM(state.ptr(), 1) == Py_True);
            w.number(length(edges));
            each(edges, [&](nb::handle edge) {
                if (length(edge) != 2) throw InputError("an edge of measured text is a pair");
                w.number(place(state_number(PyTuple_GET_ITEM(edge.ptr(), 1))));
                part(PyTuple_GET_ITEM(edge.ptr(), 0), body, depth);
            });
        }
        if (body.init.need > 0) check_going_on(states);
        const uint32_t callee = anonymous(std::move(body));
        CodeWriter(d.code).op(Code::Call);
        d.gaps.push_back({d.code.size(), callee});
        d.weight += 2;
    }

    /// There would be dead ends where a text that may end, but is too short, could not become longer by one.
    static void check_going_on(nb::handle states) {
        const auto ends = [&](nb::handle n) {
            const auto at = static_cast<Py_ssize_t>(number_of(n, length(states) - 1, "a state of measured text"));
            return PyTuple_GET_ITEM(PyTuple_GET_ITEM(states.ptr(), at), 1) == Py_True;
        };
        each(states, [&](nb::handle state) {
            bool goes_on = PyTuple_GET_ITEM(state.ptr(), 1) != Py_True;
            each(PyTuple_GET_ITEM(state.ptr(), 0),
                 [&](nb::handle edge) { goes_on = goes_on || ends(PyTuple_GET_ITEM(edge.ptr(), 1)); });
            if (!goes_on) throw InputError("where characters are needed, measured text goes on from where it may end");
        });
    }

    /// A part of a rule whose frame has no counter to lend.
    void part(nb::handle o, Draft &d, size_t depth) {
        Draft body;
        node(o, body, depth + 1);
        if (body.counts == 0) return d.append(body);
        settle_count(body);
        const uint32_t callee = anonymous(std::move(body));
        CodeWriter(d.code).op(Code::Call);
        d.gaps.push_back({d.code.size(), callee});
    }

    void branch(uint32_t callee, const std::vector<std::string_view> &captures, Draft &d) {
        d.code.push_back(static_cast<char>(Code::Branch));
        d.gaps.push_back({d.code.size(), callee});
        CodeWriter w(d.code);
        w.number(captures.size());
        for (std::string_view name : captures) w.text(name);
        d.weight += 3;
    }

    void text(nb::handle o, Draft &d, size_t depth) {
        const Ir &names = ir();
        const nb::handle excludes = names.text_excludes(o), stops = names.text_stops(o);
        const nb::handle after = names.text_after(o), captures = names.text_captures(o);
        const nb::handle max_chars = names.text_max_chars(o), max_tokens = names.text_max_tokens(o);
        const uint64_t min_chars = number_of(names.text_min_chars(o), kMaxCount, "min_chars");
        if (!max_tokens.is_none() && length(stops) > 0) throw InputError("free text with a budget of tokens cannot have stops");
        Draft body;
        CodeWriter w(body.code);
        w.op(Code::Text);
        w.number((after.is_none() ? 0u : kTextMayEnd) | (max_chars.is_none() ? 0u : kTextCountsChars) |
                 (max_tokens.is_none() ? 0u : kTextCountsTokens) | (min_chars == 0 ? 0u : kTextNeedsChars));
        w.number(length(excludes));
        each(excludes, [&](nb::handle s) {
            if (bytes_of(s).empty()) throw InputError("free text cannot exclude the empty string");
            w.text(bytes_of(s));
        });
        w.number(length(stops));
        each(stops, [&](nb::handle pair) {
            if (length(pair) != 2) throw InputError("a stop is a pair of bytes and a node");
            const std::string_view stop = bytes_of(PyTuple_GET_ITEM(pair.ptr(), 0));
            if (stop.empty()) throw InputError("free text cannot stop at the empty string");
            w.text(stop);
        });
        if (!max_chars.is_none())
            body.init.left = static_cast<uint32_t>(number_of(max_chars, kMaxCount, "max_chars"));
        if (min_chars > body.init.left) throw InputError("free text has its bounds reversed");
        body.init.need = static_cast<uint32_t>(min_chars);
        if (!max_tokens.is_none())
            body.init.need = static_cast<uint32_t>(number_of(max_tokens, kMaxCount, "max_tokens"));
        std::vector<std::string_view> capture_names;
        each(captures, [&](nb::handle name) { capture_names.push_back(text_of(name)); });
        branch(anonymous(std::move(body)), capture_names, d);
        CodeWriter arms(d.code);
        arms.number(length(stops) + 1);
        arms.number(!after.is_none());
        arms.number(0);
        if (!after.is_none()) node(after, d, depth + 1);
        each(stops, [&](nb::handle pair) {
            arms.number(1);
            arms.number(bytes_of(PyTuple_GET_ITEM(pair.ptr(), 0)).size());
            node(PyTuple_GET_ITEM(pair.ptr(), 1), d, depth + 1);
        });
    }

    void tokens(nb::handle o, Draft &d) {
        const nb::handle list = ir().tokens_tokens(o);
        CodeWriter w(d.code);
        w.op(Code::Tokens);
        w.number(ir().tokens_exclude(o).ptr() == Py_True);
        w.number(length(list));
        each(list, [&](nb::handle t) {
            const bool named = PyUnicode_Check(t.ptr());
            w.number(named);
            if (named) w.text(text_of(t));
            else w.number(number_of(t, UINT32_MAX - 1, "a token id"));
        });
        d.weight += 1;
    }

    Program assemble() {
        Program program;
        program.rules.resize(drafts_.size());
        std::vector<uint32_t> slots(drafts_.size(), kNone);  // by callee, for the rule at hand
        for (size_t i = 0; i < drafts_.size(); ++i) {
            const Draft &d = drafts_[i];
            RuleCode &out = program.rules[i];
            out.known = d.known;
            out.held = d.held;
            if (d.known) continue;
            CodeWriter w(out.code);
            size_t from = 0;
            out.code.reserve(d.code.size() + 4 * d.gaps.size());
            for (const Draft::Gap &g : d.gaps) {
                uint32_t &slot = slots[g.callee];
                if (slot == kNone) {
                    slot = static_cast<uint32_t>(out.calls.size());
                    out.calls.push_back(g.callee);
                }
                out.code.append(d.code, from, g.at - from);
                w.number(slot);
                if (!g.bare) w.bounds(drafts_[g.callee].init);
                else if (drafts_[g.callee].init != Counter{kUnbounded, 0})
                    throw InputError("the spelling of a character counts");
                from = g.at;
            }
            out.code.append(d.code, from, std::string::npos);
            for (uint32_t callee : out.calls) slots[callee] = kNone;
        }
        program.init = drafts_[0].init;
        program.held = std::move(held_);
        return program;
    }

    Store &store_;
    std::vector<std::shared_ptr<Unit>> held_;  // of known rules
    std::vector<Draft> drafts_;
    std::vector<std::pair<uint32_t, nb::object>> pending_;
    std::unordered_map<PyObject *, uint32_t> indices_;
    std::list<Spellings> spellings_;
    int inside_without_ = 0;
};

}  // namespace

std::shared_ptr<Grammar> compile(nb::handle root_rule, Store &store) {
    Encoder encoder(store);
    Program program = encoder.run(root_rule);
    std::vector<KnownRule> places;
    std::shared_ptr<Grammar> grammar;
    {
        const nb::gil_scoped_release unlocked;
        grammar = store.compile(std::move(program), &places);
    }
    encoder.note(places);
    return grammar;
}

}  // namespace dovetail
