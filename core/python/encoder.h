// From nodes of Python to the code of rules.
#pragma once

#include <deque>
#include <unordered_map>

#include "choices.h"
#include "compiled.h"

namespace dovetail {

inline constexpr size_t kUnrollWeight = 12;  // states; copies up to this are cheaper than a counter
inline constexpr uint64_t kMaxCount = 1u << 30;

/// Code in the making: what depends on other rules is filled in at the end.
struct Draft {
    struct Gap {
        size_t at;        // in `code`
        uint32_t callee;  // its slot goes here
    };
    std::string code;
    std::vector<Gap> gaps;
    Rule *known = nullptr;                                // instead of all that
    uint32_t held = kNone;                                // where it is kept alive
    Counter init{kUnbounded, 0};                          // what callers pass
    size_t weight = 0;                                    // states, roughly
    int counts = 0;                                       // Count nodes
    bool loops = false;                                   // something before repeats without bound
    size_t count_at = std::string::npos, count_size = 0;  // one that callers may parametrize
    Counter count_bounds;

    /// Appends another draft of the same rule.
    void append(const Draft &other) {
        const size_t base = code.size();
        code += other.code;
        for (const Gap &g : other.gaps) gaps.push_back({g.at + base, g.callee});
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
    Program run(nb::handle root);
    void note(const std::vector<KnownRule> &places) const;

  private:
    uint32_t rule(nb::handle object);
    bool recall(const Compiled *compiled, Draft &draft);
    uint32_t anonymous(Draft draft);
    void make_room() const;
    static void settle_count(Draft &d);
    void node(nb::handle o, Draft &d, size_t depth);
    void several(Code op, nb::handle parts, Draft &d, size_t depth);
    void choice(nb::handle parts, Draft &d, size_t depth);
    void words(const std::vector<Named> &group, Draft &d, size_t depth);
    void rest(nb::handle part, Draft &d, size_t depth);
    void unlisted(nb::handle o, Draft &d, size_t depth);
    void ranges(nb::handle list, bool is_chars, Draft &d);
    void repeat(nb::handle o, Draft &d, size_t depth);
    void count(Draft body, Counter bounds, Draft &d);
    void capture(nb::handle o, Draft &d, size_t depth);
    void any_order(nb::handle o, Draft &d, size_t depth);
    void measured(nb::handle o, Draft &d, size_t depth);
    static void check_going_on(nb::handle states);
    void part(nb::handle o, Draft &d, size_t depth);
    void branch(uint32_t callee, const std::vector<std::string_view> &captures, Draft &d);
    void text(nb::handle o, Draft &d, size_t depth);
    void tokens(nb::handle o, Draft &d);
    Program assemble();

    Store &store_;
    std::vector<std::shared_ptr<Unit>> held_;  // of known rules
    std::deque<Draft> drafts_;                 // which stay where they are
    std::vector<std::pair<uint32_t, nb::object>> pending_;
    std::unordered_map<PyObject *, uint32_t> indices_;
    int inside_without_ = 0;
};

}  // namespace dovetail
