// Random and damaged grammars, vocabularies, tokens and patterns against the core, for a while and then some more.
//
//   dovetail_fuzz SECONDS [SEED]      rounds SEED, SEED + 1, ... until the time is over
//   dovetail_fuzz --round SEED        one round again, after a finding
//
// Build it with sanitizers. A finding is a report of theirs, a broken promise of the matcher (checked here), an
// exception that is neither InputError nor LimitError, or a round of more than ten seconds of processor time.
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "grammar/code.h"
#include "describe.h"
#include "matcher/matcher.h"
#include "grammar/store.h"
#include "vocabulary/vocab.h"
#include "writer.h"

using namespace dovetail;

namespace {

uint64_t current_round = 0;
bool promised = true;  // does the grammar come from our own writer?
bool verbose = false;  // print each step, for a round that is played again

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
    finding("it took more than ten seconds of processor time");
}

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
        if (!signature.is_text && !signature.measured) rule.calls.resize(random.below(4));
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

void print_step(const char *what, const std::string &bytes) {
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
        const int64_t token = random.below(size);
        Matcher copy(matcher);
        const bool accepted = copy.accept(token);
        if (verbose && accepted != has(mask, token))
            print_step(accepted ? "accepted" : "allowed",
                       std::string(matcher.grammar()->store->vocab().bytes(token)) + " = " + std::to_string(token));
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
        if (verbose) print_step(accepted ? "bytes" : "refused bytes", bytes);
        check(accepted || matcher.steps() == before, "refused bytes change nothing");
        return;
    }
    case 1: {
        const uint32_t steps = random.below(static_cast<uint32_t>(before) + 1);
        if (verbose) print_step("rollback", std::to_string(steps));
        return matcher.rollback(steps);
    }
    case 2: {
        const std::string bytes = matcher.forced();
        if (verbose) print_step("forced", bytes);
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
    if (verbose) print_step("token", std::string(matcher.grammar()->store->vocab().bytes(token)) + " = " + std::to_string(token));
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
            if (verbose) describe(program);
            const std::shared_ptr<Grammar> grammar = store->compile(std::move(program));
            check(!save_program(store->program_of(*grammar)).empty(), "a compiled grammar can be saved");
            Matcher matcher(grammar);
            for (int steps = 0; steps < 24; ++steps) {
                if (random.one_in(4)) check_mask(random, matcher, size);
                step(random, matcher, size);
            }
            matcher.reset();
            check(
                mask_of(matcher) ==
                    [&] {
                        Matcher fresh(grammar);
                        return mask_of(fresh);
                    }(),
                "reset is a fresh start");
        } catch (const InputError &) {
        } catch (const LimitError &) {}
    }
}

// Processor time, because a busy machine is no finding.
void limit(time_t seconds) {
    const itimerval timer{{0, 0}, {seconds, 0}};
    setitimer(ITIMER_PROF, &timer, nullptr);
}

void play_round(uint64_t seed) {
    current_round = seed;
    Random random(seed);
    limit(10);
    try {
        play(random);
    } catch (const std::exception &error) { finding(error.what()); }
    limit(0);
}

}  // namespace

int main(int argc, char **argv) {
    std::signal(SIGPROF, too_slow);
    if (argc == 3 && !std::strcmp(argv[1], "--round")) {
        verbose = true;
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
