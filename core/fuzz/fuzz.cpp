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
#include "matcher.h"
#include "store.h"
#include "vocab.h"

using namespace dovetail;

namespace {

uint64_t current_round = 0;

[[noreturn]] void finding(const char *what) {
    std::fprintf(stderr, "finding in round %llu: %s\n", static_cast<unsigned long long>(current_round), what);
    std::abort();
}

void check(bool holds, const char *promise) {
    if (!holds) finding(promise);
}

void too_slow(int) {
    // Only calls that are safe in a signal handler.
    const char text[] = "finding: a round took more than ten seconds\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(3);
    std::abort();
}

class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    uint32_t below(uint32_t n) { return n ? static_cast<uint32_t>(engine_() % n) : 0; }
    bool one_in(uint32_t n) { return below(n) == 0; }
    /// Mostly letters that grammars are likely to share, at times any byte.
    uint8_t byte() { return one_in(8) ? static_cast<uint8_t>(engine_()) : static_cast<uint8_t>("ab<>\"{}1 \xc3\xa9\xf0"[below(12)]); }
    std::string text(uint32_t longest) {
        std::string s;
        for (uint32_t n = below(longest + 1); n > 0; --n) s.push_back(static_cast<char>(byte()));
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

/// Writes nodes that load_program accepts, so that the builders behind it are reached.
class Writer {
  public:
    Writer(Random &random, uint32_t calls) : random_(random), calls_(calls) {}

    std::string rule() {
        if (random_.one_in(5)) text();
        else node(1 + random_.below(4));
        return std::move(w_.out);
    }

  private:
    void node(uint32_t depth) {
        switch (random_.below(depth ? 13 : 5)) {
        case 0: w_.op(Code::Lit); return w_.text(random_.text(4));
        case 1: w_.op(Code::Special); return w_.text(random_.one_in(2) ? "<s>" : random_.text(4));
        case 2: return ranges(Code::Chars, random_.one_in(3) ? 0x10FFFF : 0x17F);
        case 3: return ranges(Code::Bytes, 0xFF);
        case 4: return tokens();
        case 5: return several(Code::Seq, depth);
        case 6: return several(Code::Alt, depth);
        case 7: w_.op(Code::Loop); w_.number(random_.below(3)); return node(depth - 1);
        case 8: w_.op(Code::Unroll); w_.bounds(bounds(true)); return node(depth - 1);
        case 9: w_.op(Code::Count); w_.bounds(bounds(false)); return node(depth - 1);
        case 10: w_.op(Code::CountParam); return node(depth - 1);
        case 11: return call(depth);
        default: w_.op(Code::Without); strings(2, 1); return node(depth - 1);
        }
    }
    void several(Code op, uint32_t depth) {
        w_.op(op);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) node(depth - 1);
    }
    void ranges(Code op, uint32_t top) {
        w_.op(op);
        std::vector<uint32_t> ends(2 * random_.below(4));
        for (uint32_t &end : ends) end = random_.one_in(2) ? random_.below(top + 1) : 'a' + random_.below(26);
        std::sort(ends.begin(), ends.end());
        w_.number(ends.size() / 2);
        for (uint32_t end : ends) w_.number(end);
    }
    void tokens() {
        w_.op(Code::Tokens);
        w_.out.push_back(random_.one_in(3) ? 1 : 0);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            const bool by_text = random_.one_in(4);
            w_.out.push_back(by_text ? 1 : 0);
            if (by_text) w_.text(random_.one_in(2) ? "<s>" : "a");
            else w_.number(random_.below(60));
        }
    }
    void call(uint32_t depth) {
        if (!calls_) return several(Code::Seq, 1);
        const bool branch = random_.one_in(2);
        w_.op(branch ? Code::Branch : Code::Call);
        w_.number(random_.below(calls_));
        w_.bounds(bounds(false));
        if (!branch) return;
        strings(2, 0);
        const uint32_t arms = random_.below(4);
        w_.number(arms);
        for (uint32_t i = 0; i < arms; ++i) {
            const bool present = !random_.one_in(4);
            w_.out.push_back(present ? 1 : 0);
            w_.number(random_.below(3));
            if (present) node(depth - 1);
        }
    }
    void text() {
        w_.op(Code::Text);
        w_.number(random_.below(8));
        strings(2, 1);
        strings(3, 1);
    }
    void strings(uint32_t most, uint32_t shortest) {
        const uint32_t n = random_.below(most + 1);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            std::string s = random_.text(4);
            if (s.size() < shortest) s = "<";
            w_.text(s);
        }
    }
    Counter bounds(bool small) {
        Counter c;
        c.need = small ? random_.below(4) : random_.number();
        c.left = random_.one_in(4) ? kUnbounded : small ? random_.below(6) : random_.number();
        if (c.left < c.need) std::swap(c.left, c.need);
        if (c.need == kUnbounded) c.need = 7;
        return c;
    }

    Random &random_;
    uint32_t calls_;
    CodeWriter w_;
};

std::shared_ptr<Store> random_store(Random &random) {
    std::vector<std::string> tokens;
    if (!random.one_in(4))
        for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (uint32_t n = random.below(80); n > 0; --n) tokens.push_back(random.text(6));
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
    Program program;
    program.init.need = random.below(3);
    program.init.left = random.one_in(3) ? kUnbounded : program.init.need + random.below(3);
    program.rules.resize(1 + random.below(5));
    for (RuleCode &rule : program.rules) {
        rule.calls.resize(random.below(4));
        for (uint32_t &callee : rule.calls) callee = random.below(static_cast<uint32_t>(program.rules.size()));
        rule.code = Writer(random, static_cast<uint32_t>(rule.calls.size())).rule();
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

bool has(const Mask &mask, uint32_t token) { return mask[token / 32] >> (token % 32) & 1; }

/// A mask allows exactly what a copy accepts, and accepting and taking back changes nothing.
void check_mask(Random &random, Matcher &matcher, uint32_t size) {
    const Mask mask = mask_of(matcher);
    for (uint32_t t = size; t < mask.size() * 32; ++t) check(!has(mask, t), "no bit beyond the vocabulary");
    for (int i = 0; i < 12 && size; ++i) {
        const uint32_t token = random.below(size);
        Matcher copy(matcher);
        check(copy.accept(token) == has(mask, token), "a token is allowed exactly when it is accepted");
        check(matcher.validate(&token, 1) == (has(mask, token) ? 1u : 0u), "validate agrees with the mask");
        if (!has(mask, token)) continue;
        copy.rollback(1);
        check(mask_of(copy) == mask, "a token that is taken back leaves no trace");
    }
}

void step(Random &random, Matcher &matcher, uint32_t size) {
    const size_t before = matcher.steps();
    switch (random.below(8)) {
    case 0: {
        const std::string bytes = random.text(8);
        check(matcher.accept_bytes(bytes) || matcher.steps() == before, "refused bytes change nothing");
        return;
    }
    case 1: return matcher.rollback(random.below(static_cast<uint32_t>(before) + 1));
    case 2: {
        const std::string bytes = matcher.forced();
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
    if (!allowed.empty()) check(matcher.accept(allowed[random.below(static_cast<uint32_t>(allowed.size()))]), "allowed is accepted");
}

void play(Random &random) {
    const std::shared_ptr<Store> store = random_store(random);
    const uint32_t size = store->vocab().size();
    for (int grammars = 0; grammars < 4; ++grammars) {
        try {
            std::string bytes = random_program(random);
            if (random.one_in(3)) damage(random, bytes);
            const std::shared_ptr<Grammar> grammar = store->compile(load_program(bytes));
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
