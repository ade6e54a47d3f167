// Random and damaged grammars, vocabularies and tokens against the core, for a while and then some more.
//
//   dovetail_fuzz SECONDS [SEED]      rounds SEED, SEED + 1, ... until the time is over
//   dovetail_fuzz --round SEED        one round again, after a finding
//
// Build it with sanitizers. A finding is a report of theirs, a broken promise of the matcher (checked here), an
// exception that is neither InputError nor LimitError, or a round of more than ten seconds.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "code.h"
#include "describe.h"
#include "matcher.h"
#include "store.h"
#include "vocab.h"

using namespace dovetail;

namespace {

uint64_t current_round = 0;
bool promised = true;  // does the grammar come from our own writer?
bool told = false;      // is this round played again, to be looked at?

[[noreturn]] void finding(const char *what) {
    std::fflush(stdout);
    std::fprintf(stderr, "finding in round %llu: %s\n", static_cast<unsigned long long>(current_round), what);
    std::abort();
}

void check(bool holds, const char *promise) {
    if (!holds && promised) finding(promise);
}

void too_slow(int) {
    // Not safe in a signal handler by the letter, but the program ends here.
    finding("it took more than ten seconds");
}

class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    uint32_t below(uint32_t n) { return n ? static_cast<uint32_t>(engine_() % n) : 0; }
    bool one_in(uint32_t n) { return below(n) == 0; }
    /// Mostly letters that grammars are likely to share, at times any byte.
    uint8_t byte() { return one_in(8) ? static_cast<uint8_t>(engine_()) : static_cast<uint8_t>("ab<>\"{}1 \xc3\xa9\xf0,\\:"[below(15)]); }
    std::string text(uint32_t longest) {
        std::string s;
        for (uint32_t n = below(longest + 1); n > 0; --n) s.push_back(static_cast<char>(byte()));
        return s;
    }
    /// Well-formed UTF-8, not empty, as free text and its stops are.
    std::string word() {
        std::string s;
        static constexpr const char *kLetters[] = {"<", "a", "b", ">", "\xc3\xa9", "\xf0\x9f\x99\x82"};
        for (uint32_t n = 1 + below(3); n > 0; --n) s += kLetters[below(6)];
        return s;
    }
    /// Small numbers mostly, sometimes one at the edge of what a counter holds.
    uint32_t number() {
        static constexpr uint32_t kEdges[] = {15, 16, 17, 255, 256, 65536, 1u << 30, UINT32_MAX - 1, UINT32_MAX};
        return one_in(10) ? kEdges[below(9)] : below(4);
    }

  private:
    std::mt19937_64 engine_;
};

/// What callers of a rule have to know.
struct Signature {
    bool is_text = false;
    bool has_param = false;  // callers pass the bounds of its repetition
    bool any_order = false;  // its frame keeps a set
    uint32_t flags = 0;      // of a text
    std::vector<std::string> stops;

    static Signature draw(Random &random, bool root) {
        Signature s;
        s.is_text = !root && random.one_in(3);
        s.any_order = !s.is_text && random.one_in(5);
        s.has_param = !s.is_text && !s.any_order && random.one_in(4);
        if (!s.is_text) return s;
        s.flags = random.one_in(8) ? kTextNone : random.below(16);
        if (s.flags & kTextCountsTokens) s.flags &= ~uint32_t{kTextNeedsChars};
        else
            for (uint32_t n = random.below(4); n > 0; --n) s.stops.push_back(random.word());
        return s;
    }
    Counter bounds(Random &random) const {
        if (any_order) return {};
        if (!is_text && !has_param) return {kUnbounded, 0};
        if (has_param) return random_bounds(random);
        Counter c{kUnbounded, 0};
        if (flags & kTextCountsChars) c.left = random.below(6);
        if (flags & (kTextCountsTokens | kTextNeedsChars)) c.need = std::min(random.below(4), c.left);
        return c;
    }
    static Counter random_bounds(Random &random) {
        Counter c;
        c.need = random.number();
        c.left = random.one_in(4) ? kUnbounded : random.number();
        if (c.left < c.need) std::swap(c.left, c.need);
        if (c.need > 1u << 30) c.need = 7;
        return c;
    }
};

/// Writes rules of the shape that the encoder gives, so that everything behind it is reached and every promise holds.
class Writer {
  public:
    Writer(Random &random, std::vector<const Signature *> callees) : random_(random), callees_(std::move(callees)) {}

    std::string rule(const Signature &self) {
        if (self.is_text) {
            w_.op(Code::Text);
            w_.number(self.flags);
            words();
            w_.number(self.stops.size());
            for (const std::string &s : self.stops) w_.text(s);
            return std::move(code_);
        }
        if (self.has_param) {
            counting_ = true;  // a frame has one counter, and callers set it
            w_.op(Code::Seq);
            w_.number(3);
            node(1);
            w_.op(Code::CountParam);
            node(2);
            node(1);
        } else if (self.any_order) {
            any_order();
        } else {
            node(1 + random_.below(4));
        }
        return std::move(code_);
    }

  private:
    void node(uint32_t depth) {
        switch (random_.below(depth ? 14 : 5)) {
        case 0: w_.op(Code::Lit); return w_.text(random_.text(4));
        case 1: w_.op(Code::Special); return w_.text(random_.one_in(2) ? "<s>" : random_.text(4));
        case 2: return ranges(Code::Chars, random_.one_in(3) ? 0x10FFFF : 0x17F);
        case 3: return ranges(Code::Bytes, 0xFF);
        case 4: return tokens();
        case 5:
        case 6: return several(random_.one_in(2) ? Code::Seq : Code::Alt, depth);
        case 7: w_.op(Code::Loop); w_.number(random_.below(3)); return node(depth - 1);
        case 8: return unroll(depth);
        case 9: return count(depth);
        case 10: return call(depth);
        case 11: return random_.one_in(2) ? spelled(depth) : unlisted(depth);
        case 12: return key(depth);
        default: return without(depth);
        }
    }
    void any_order() {
        counting_ = true;  // a frame that keeps a set keeps no count
        w_.op(Code::AnyOrder);
        w_.number(random_.below(2));
        const uint32_t n = random_.below(5);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            w_.number(random_.below(2));
            node(2);
        }
        const bool extra = random_.one_in(2);
        w_.number(extra ? 1 : 0);
        if (extra) node(1);
        node(1);
        node(1);
        counting_ = false;
    }
    void several(Code op, uint32_t depth) {
        w_.op(op);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) node(depth - 1);
    }
    void unroll(uint32_t depth) {
        Counter c{1 + random_.below(5), 0};
        c.need = random_.below(c.left + 1);
        w_.op(Code::Unroll);
        w_.bounds(c);
        node(depth - 1);
    }
    void count(uint32_t depth) {
        if (counting_) return unroll(depth);
        counting_ = true;
        w_.op(Code::Count);
        w_.bounds(Signature::random_bounds(random_));
        node(depth - 1);
        counting_ = false;
    }
    void without(uint32_t depth) {
        if (bare_) return several(Code::Alt, depth);
        bare_ = true;  // no calls and no tokens inside
        w_.op(Code::Without);
        words();
        node(depth - 1);
        bare_ = false;
    }
    void ranges(Code op, uint32_t top) {
        w_.op(op);
        std::vector<uint32_t> ends;
        for (uint32_t n = 2 * random_.below(4); n > 0; --n)
            ends.push_back(random_.one_in(2) ? random_.below(top + 1) : 'a' + random_.below(26));
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        if (ends.size() % 2) ends.push_back(ends.back());
        w_.number(ends.size() / 2);
        for (uint32_t end : ends) w_.number(end);
    }
    void tokens() {
        if (bare_) return ranges(Code::Bytes, 0xFF);
        w_.op(Code::Tokens);
        w_.number(random_.one_in(3) ? 1 : 0);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            const bool by_text = random_.one_in(4);
            w_.number(by_text ? 1 : 0);
            if (by_text) w_.text("<s>");
            else w_.number(random_.below(60));
        }
    }
    void call(uint32_t depth) {
        if (callees_.empty() || bare_) return several(Code::Seq, depth);
        const uint32_t slot = random_.below(static_cast<uint32_t>(callees_.size()));
        const Signature &callee = *callees_[slot];
        const bool branch = callee.is_text || random_.one_in(3);
        w_.op(branch ? Code::Branch : Code::Call);
        w_.number(slot);
        w_.bounds(callee.bounds(random_));
        if (!branch) return;
        words();  // captures
        w_.number(callee.stops.size() + 1);
        for (size_t i = 0; i <= callee.stops.size(); ++i) {
            const bool present = i > 0 || !callee.is_text || (callee.flags & kTextMayEnd);
            w_.number(present ? 1 : 0);
            w_.number(i ? callee.stops[i - 1].size() : 0);
            if (present) node(depth - 1);
        }
    }
    void spelled(uint32_t depth) {
        if (callees_.empty() || bare_) return several(Code::Seq, depth);
        w_.op(Code::Spelled);
        w_.text(random_.text(2));
        code_.push_back(random_.one_in(3) ? 'a' : '\\');
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            code_.push_back(random_.one_in(4) ? '\0' : static_cast<char>('a' + random_.below(4)));
            w_.number(random_.below(static_cast<uint32_t>(callees_.size())));
        }
    }
    void unlisted(uint32_t depth) {
        if (callees_.empty() || bare_) return several(Code::Seq, depth);
        const auto slot = [&] { w_.number(random_.below(static_cast<uint32_t>(callees_.size()))); };
        w_.op(Code::Unlisted);
        code_.push_back('\\');
        w_.number(2);
        for (const uint32_t end : {0x20u, 0x7Eu, 0xA0u, 0x10FFFFu}) w_.number(end);
        const uint32_t places = 1 + random_.below(4);
        w_.number(places);
        for (uint32_t place = 0; place < places; ++place) {
            code_.push_back(random_.one_in(2) ? 1 : 0);
            const uint32_t forks = place ? random_.below(3) : 0;
            w_.number(forks);
            for (uint32_t i = 0; i < forks; ++i) {
                code_.push_back(random_.one_in(4) ? '\0' : static_cast<char>('a' + i));
                slot();
                w_.number(random_.below(place));
            }
            slot();
        }
        node(depth - 1);
        node(depth - 1);
    }
    void key(uint32_t depth) {
        if (bare_) return several(Code::Seq, depth);
        w_.op(Code::Seq);
        const bool colon = !random_.one_in(3);
        w_.number(colon ? 5 : 4);
        w_.op(Code::Lit);
        w_.text(random_.one_in(3) ? "{\"" : random_.one_in(2) ? ",\"" : "\"");
        const bool grows = random_.one_in(2);
        w_.op(grows ? Code::Loop : Code::Unroll);
        if (grows) w_.number(0);
        else w_.bounds({random_.below(3), 0});
        ranges(Code::Chars, 0x7F);
        w_.op(Code::Lit), w_.text("\"");
        w_.op(Code::NewKey), w_.number(grows ? 1 : 0);
        if (!colon) return;
        w_.op(Code::Lit);
        w_.text(random_.one_in(2) ? ":" : ":1");
    }
    void words() {
        const uint32_t n = random_.below(3);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) w_.text(random_.word());
    }

    Random &random_;
    std::vector<const Signature *> callees_;
    bool counting_ = false, bare_ = false;
    std::string code_;
    CodeWriter w_{code_};
};

std::shared_ptr<Store> random_store(Random &random) {
    std::vector<std::string> tokens;
    if (!random.one_in(4))
        for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (uint32_t n = random.below(80); n > 0; --n) tokens.push_back(random.text(6));
    if (tokens.empty()) tokens.emplace_back("a");  // a vocabulary of nothing is refused
    std::vector<std::pair<std::string, uint32_t>> special;
    for (const char *name : {"<s>", "<", "</s>"}) {
        if (random.one_in(3)) continue;
        special.emplace_back(name, static_cast<uint32_t>(tokens.size()));
        tokens.emplace_back(name);
    }
    std::vector<uint32_t> stops;
    if (!random.one_in(8)) {
        stops.push_back(static_cast<uint32_t>(tokens.size()));
        tokens.emplace_back("<end>");
    }
    // A tiny cache makes eviction happen in every round.
    return std::make_shared<Store>(Vocab(std::move(tokens), special, std::move(stops)), random.one_in(3) ? 1 << 10 : 64u << 20);
}

std::string random_program(Random &random) {
    std::vector<Signature> signatures(1 + random.below(5));
    for (Signature &signature : signatures) signature = Signature::draw(random, &signature == &signatures[0]);
    Program program;
    program.init = signatures[0].bounds(random);
    for (const Signature &signature : signatures) {
        RuleCode rule;
        std::vector<const Signature *> callees;
        if (!signature.is_text) rule.calls.resize(random.below(4));
        for (uint32_t &callee : rule.calls) {
            callee = random.below(static_cast<uint32_t>(signatures.size()));
            callees.push_back(&signatures[callee]);
        }
        rule.code = Writer(random, std::move(callees)).rule(signature);
        program.rules.push_back(std::move(rule));
    }
    return save_program(program);
}

void damage(Random &random, std::string &bytes) {
    for (uint32_t n = 1 + random.below(4); n > 0 && !bytes.empty(); --n) {
        const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
        switch (random.below(3)) {
        case 0: bytes[at] = static_cast<char>(random.below(256)); break;
        case 1: bytes.erase(at, 1 + random.below(4)); break;
        default: bytes.insert(at, 1, static_cast<char>(random.below(256)));
        }
    }
}

using Mask = std::vector<uint32_t>;

Mask mask_of(Matcher &matcher) {
    Mask mask(matcher.mask_words(), 0xA5A5A5A5u);
    matcher.fill_mask(mask.data());
    return mask;
}

void tell(const char *what, const std::string &bytes) {
    std::printf("%s ", what);
    for (const char c : bytes) std::printf(c >= ' ' && c < 127 ? "%c" : "\\x%02x", static_cast<uint8_t>(c));
    std::printf("\n");
}

bool has(const Mask &mask, uint32_t token) { return mask[token / 32] >> (token % 32) & 1; }

/// A mask allows exactly what a copy accepts, and accepting and taking back changes nothing.
void check_mask(Random &random, Matcher &matcher, uint32_t size) {
    const Mask mask = mask_of(matcher);
    for (uint32_t t = size; t < mask.size() * 32; ++t) check(!has(mask, t), "no bit beyond the vocabulary");
    for (int i = 0; i < 12 && size; ++i) {
        const uint32_t token = random.below(size);
        Matcher copy(matcher);
        const bool accepted = copy.accept(token);
        if (told && accepted != has(mask, token))
            tell(accepted ? "accepted" : "allowed", std::string(matcher.grammar()->store->vocab().bytes(token)) + " = " + std::to_string(token));
        check(accepted == has(mask, token), "a token is allowed exactly when it is accepted");
        check(matcher.validate(&token, 1) == (accepted ? 1u : 0u), "validate agrees with accept");
        if (!accepted) continue;
        copy.rollback(1);
        check(mask_of(copy) == mask, "a token that is taken back leaves no trace");
    }
}

void step(Random &random, Matcher &matcher, uint32_t size) {
    const size_t before = matcher.steps();
    switch (random.below(8)) {
    case 0: {
        const std::string bytes = random.text(8);
        const bool accepted = matcher.accept_bytes(bytes);
        if (told) tell(accepted ? "bytes" : "refused bytes", bytes);
        check(accepted || matcher.steps() == before, "refused bytes change nothing");
        return;
    }
    case 1: {
        const uint32_t steps = random.below(static_cast<uint32_t>(before) + 1);
        if (told) tell("rollback", std::to_string(steps));
        return matcher.rollback(steps);
    }
    case 2: {
        const std::string bytes = matcher.forced();
        if (told) tell("forced", bytes);
        Matcher copy(matcher);
        check(bytes.empty() || copy.accept_bytes(bytes), "forced bytes are accepted");
        return;
    }
    case 3: {
        uint64_t last = 0;
        for (const CaptureMark &mark : matcher.captures()) {
            check(mark.at >= last && mark.at <= matcher.position(), "captures are in order and inside the output");
            last = mark.at;
        }
        return;
    }
    default: break;
    }
    const Mask mask = mask_of(matcher);
    std::vector<uint32_t> allowed;
    for (uint32_t t = 0; t < size; ++t)
        if (has(mask, t)) allowed.push_back(t);
    if (matcher.is_finished()) check(allowed.empty(), "nothing comes after the end");
    if (allowed.empty()) return;
    const uint32_t token = allowed[random.below(static_cast<uint32_t>(allowed.size()))];
    if (told) tell("token", std::string(matcher.grammar()->store->vocab().bytes(token)) + " = " + std::to_string(token));
    check(matcher.accept(token), "an allowed token is accepted");
}

void play(Random &random) {
    const std::shared_ptr<Store> store = random_store(random);
    const uint32_t size = store->vocab().size();
    for (int grammars = 0; grammars < 4; ++grammars) {
        try {
            std::string bytes = random_program(random);
            // What damage makes may mean anything, so then only crashes and hangs count.
            promised = !random.one_in(3);
            if (!promised) damage(random, bytes);
            Program program = load_program(bytes);
            if (told) describe(program);
            const std::shared_ptr<Grammar> grammar = store->compile(std::move(program));
            check(!save_program(store->program_of(*grammar)).empty(), "a compiled grammar can be saved");
            Matcher matcher(grammar);
            for (int steps = 0; steps < 24; ++steps) {
                if (random.one_in(4)) check_mask(random, matcher, size);
                step(random, matcher, size);
            }
            matcher.reset();
            check(mask_of(matcher) == [&] { Matcher fresh(grammar); return mask_of(fresh); }(), "reset is a fresh start");
        } catch (const InputError &) {
        } catch (const LimitError &) {
        }
    }
}

void play_round(uint64_t seed) {
    current_round = seed;
    Random random(seed);
    alarm(10);
    try {
        play(random);
    } catch (const std::exception &error) {
        finding(error.what());
    }
    alarm(0);
}

}  // namespace

int main(int argc, char **argv) {
    std::signal(SIGALRM, too_slow);
    if (argc == 3 && !std::strcmp(argv[1], "--round")) {
        told = true;
        play_round(std::strtoull(argv[2], nullptr, 10));
        return 0;
    }
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    const auto start = std::chrono::steady_clock::now();
    uint64_t seed = first;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) play_round(seed++);
    std::printf("%llu rounds, no finding\n", static_cast<unsigned long long>(seed - first));
}
