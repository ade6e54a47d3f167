// Interns rules by their code and the rules they call, those that are mutually recursive together.

#include "grammar/store.h"

#include <algorithm>
#include <atomic>

#include "grammar/ast.h"
#include "mask/cache.h"

namespace dovetail {

struct UnitDeleter {
    Store *store;
    void operator()(Unit *unit) const { store->bury(unit); }
};

namespace {

/// Tarjan's components without recursion, callees before callers; known rules are in none.
std::vector<std::vector<uint32_t>> components(const std::vector<RuleCode> &rules) {
    const size_t n = rules.size();
    std::vector<uint32_t> index(n, kNone), low(n, 0), path, at(n, 0);
    for (size_t r = 0; r < n; ++r)
        if (rules[r].known) index[r] = 0;  // as if it had been left already
    std::vector<bool> on_path(n);
    std::vector<uint32_t> frames;
    std::vector<std::vector<uint32_t>> sccs;
    uint32_t next = 0;
    auto enter = [&](uint32_t r) {
        index[r] = low[r] = next++;
        path.push_back(r);
        on_path[r] = true;
        frames.push_back(r);
    };
    enter(0);
    while (!frames.empty()) {
        const uint32_t r = frames.back();
        if (at[r] < rules[r].calls.size()) {
            const uint32_t callee = rules[r].calls[at[r]++];
            if (index[callee] == kNone) enter(callee);
            else if (on_path[callee]) low[r] = std::min(low[r], index[callee]);
            continue;
        }
        frames.pop_back();
        if (!frames.empty()) low[frames.back()] = std::min(low[frames.back()], low[r]);
        if (low[r] != index[r]) continue;
        std::vector<uint32_t> &component = sccs.emplace_back();
        uint32_t member;
        do {
            member = path.back();
            path.pop_back();
            on_path[member] = false;
            component.push_back(member);
        } while (member != r);
        // The rule through which the component was entered comes first.
        std::reverse(component.begin(), component.end());
    }
    return sccs;
}

/// Orders a component by first call from its entry, so that equal components of two grammars get equal keys.
void order_by_first_call(std::vector<uint32_t> &component, const std::vector<RuleCode> &rules, std::vector<uint32_t> &place) {
    const size_t size = component.size();
    for (uint32_t r : component) place[r] = kNone - 1;  // a member that has no place yet
    std::vector<uint32_t> order{component[0]};
    place[component[0]] = 0;
    for (size_t i = 0; i < order.size(); ++i)
        for (uint32_t callee : rules[order[i]].calls)
            if (place[callee] == kNone - 1) {
                place[callee] = static_cast<uint32_t>(order.size());
                order.push_back(callee);
            }
    component = std::move(order);
    if (component.size() != size) throw InputError("a component of rules is not connected");
}

class Facts {
  public:
    /// `trees` lend their memory: a grammar has hundreds of small rules.
    Facts(Unit &unit, const Vocab &vocab, std::vector<Ast> &trees) : unit_(unit) {
        if (trees.size() < unit.rules.size()) trees.resize(unit.rules.size());
        asts_ = {trees.data(), unit.rules.size()};
        for (size_t i = 0; i < asts_.size(); ++i) {
            const auto &r = unit.rules[i];
            Ast &ast = asts_[i];
            ast.assign(r->code);
            check_text(ast);
            check_measured(ast);
            for (uint32_t n = 0; n < ast.nodes.size(); ++n) {
                if (ast.nodes[n].op == Code::Without) ast.nodes[n].flag = !can_match(*r, ast, n, vocab);
                // Tokens must be found when a grammar is compiled, not when it is first walked.
                if (ast.nodes[n].op == Code::Tokens) ast.nodes[n].count = token_set(ast, n, vocab).has_any(vocab);
            }
        }
    }

    void find() {
        for (const auto &r : unit_.rules) r->productive[0] = r->productive[1] = false;
        fixpoint([](Rule &r) -> bool * { return r.productive; },
                 [](const Ast &a, bool need, const auto &callee) { return is_productive(a, a.root, need, callee); });
        fixpoint([](Rule &r) -> bool * { return r.nullable; },
                 [](const Ast &a, bool need, const auto &callee) { return is_nullable(a, a.root, need, callee); });
        for (size_t i = 0; i < asts_.size(); ++i) {
            const Ast::Node &root = asts_[i].nodes[asts_[i].root];
            Rule &r = *unit_.rules[i];
            r.counts_tokens = root.op == Code::Text && (root.slot & kTextCountsTokens);
            r.keeps_set = root.op == Code::AnyOrder;
            if (root.op == Code::Measured && r.productive[0]) {
                const auto live = [&](uint32_t kid) { return is_productive(asts_[i], kid, false, facts_of(r)); };
                r.least_bound = fewest_chars(asts_[i], root, live)[0] + 1;
            }
            r.single_exit = root.op != Code::Text || asts_[i].lists(root).stops.empty();
        }
        find_keys();
        for (size_t i = 0; i < asts_.size(); ++i) {
            check_calls(asts_[i], *unit_.rules[i]);
            check_arms(asts_[i], *unit_.rules[i]);
        }
        find_left_groups();
    }

  private:
    void find_keys() {
        for (const Ast &ast : asts_)
            for (const Ast::Node &n : ast.nodes) {
                if (n.op != Code::NewKey) continue;
                unit_.ends_keys = true;
                unit_.bounds_keys = unit_.bounds_keys || !n.flag;
            }
        for (const auto &callee : unit_.callees) {
            unit_.ends_keys = unit_.ends_keys || callee->ends_keys;
            unit_.bounds_keys = unit_.bounds_keys || callee->bounds_keys;
        }
    }

    /// Only a branch can tell by which stop a free text ended, and members in any order begin with the empty set.
    static void check_calls(const Ast &ast, const Rule &rule) {
        auto check = [&](uint32_t slot, bool branch, Counter bounds) {
            const Rule &callee = *rule.calls[slot];
            if (!callee.single_exit && !branch) throw InputError("free text with stops is called without arms");
            if (callee.keeps_set && !(bounds == Counter{})) throw InputError("members in any order are called with bounds");
        };
        for (const Ast::Node &n : ast.nodes) {
            if (rule.keeps_set && (n.op == Code::Count || n.op == Code::CountParam))
                throw InputError("members in any order count in the same frame");
            if (n.op == Code::Call || n.op == Code::Branch) check(n.slot, n.op == Code::Branch, n.bounds);
        }
    }

    static std::string stop_of(const Rule &text, size_t index) {
        const Ast ast(text.code);
        const Ast::Node &root = ast.nodes[ast.root];
        if (root.op != Code::Text || index >= ast.lists(root).stops.size()) return "a call";
        return '"' + std::string(ast.lists(root).stops[index]) + '"';
    }

    /// Free text ends at its first stop whatever follows, so nothing that could follow would be a dead end.
    static void check_arms(const Ast &ast, const Rule &rule) {
        for (const Ast::Node &n : ast.nodes) {
            if (n.op != Code::Branch) continue;
            const std::vector<Ast::Arm> &arms = ast.lists(n).arms;
            for (size_t k = 1; k < arms.size(); ++k)
                if (arms[k].node != kNone && !is_productive(ast, arms[k].node, false, facts_of(rule)))
                    throw InputError("nothing can match what follows " + stop_of(*rule.calls[n.slot], k - 1));
        }
    }

    template <class Field, class Test> void fixpoint(Field field, Test test) {
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = 0; i < asts_.size(); ++i) {
                Rule &r = *unit_.rules[i];
                // Only what callers count makes a difference between the two.
                const int cases = asts_[i].counts_for_callers ? 2 : 1;
                for (int need = 0; need < cases; ++need) {
                    bool &fact = field(r)[need];
                    if (fact || !test(asts_[i], need != 0, facts_of(r))) continue;
                    fact = changed = true;
                    if (cases == 1) field(r)[1] = true;
                }
            }
        }
    }

    /// A spine follows returns, not calls, so it cannot tell where a capture on the left began.
    static void check_captures(const Ast &ast, const Rule &rule, const std::vector<Rule *> &group) {
        std::vector<uint32_t> left;
        left_calls(ast, ast.root, facts_of(rule), left);
        for (const Ast::Node &n : ast.nodes) {
            if (n.op != Code::Branch || ast.lists(n).names.empty()) continue;
            if (std::find(left.begin(), left.end(), n.slot) == left.end()) continue;
            if (std::find(group.begin(), group.end(), rule.calls[n.slot]) != group.end())
                throw InputError("a capture cannot be the left part of a left recursion");
        }
    }

    /// Rules that reach themselves by calls on the left, grouped with those they share a cycle with.
    void find_left_groups() {
        const size_t n = asts_.size();
        const std::vector<Rule *> &called = unit_.rules[0]->calls;
        if (n == 1 && std::find(called.begin(), called.end(), unit_.rules[0].get()) == called.end()) return;
        std::unordered_map<const Rule *, uint32_t> place;
        for (uint32_t i = 0; i < n; ++i) place[unit_.rules[i].get()] = i;
        std::vector<RuleCode> left(n + 1);
        for (uint32_t i = 0; i < n; ++i) {
            std::vector<uint32_t> slots;
            left_calls(asts_[i], asts_[i].root, facts_of(*unit_.rules[i]), slots);
            for (uint32_t slot : slots) {
                const auto it = place.find(unit_.rules[i]->calls[slot]);
                if (it != place.end()) left[i + 1].calls.push_back(it->second + 1);
            }
            left[0].calls.push_back(i + 1);
        }
        for (const std::vector<uint32_t> &group : components(left)) {
            if (group[0] == 0) continue;
            const auto &calls = left[group[0]].calls;
            if (group.size() == 1 && std::find(calls.begin(), calls.end(), group[0]) == calls.end()) continue;
            std::vector<Rule *> members;
            for (uint32_t g : group) members.push_back(unit_.rules[g - 1].get());
            for (const Rule *m : members)
                if (m->keeps_set) throw InputError("members in any order cannot be left-recursive");
            for (uint32_t g : group) check_captures(asts_[g - 1], *unit_.rules[g - 1], members);
            for (Rule *m : members) m->left_group = members;
        }
    }

    Unit &unit_;
    std::span<Ast> asts_;
};

std::atomic<uint64_t> last_store{0};

void append_number(std::string &key, uint64_t v) { key.append(reinterpret_cast<const char *>(&v), sizeof v); }

/// The content of a component: its code, and what it calls.
std::string key_of(const std::vector<uint32_t> &component, const std::vector<RuleCode> &rules, const std::vector<Rule *> &made,
                   const std::vector<uint32_t> &place) {
    size_t size = 0;
    for (uint32_t r : component) size += (1 + rules[r].calls.size()) * sizeof(uint64_t) + rules[r].code.size();
    std::string key;
    key.reserve(size);
    for (uint32_t r : component) {
        append_number(key, rules[r].code.size());
        key += rules[r].code;
        for (uint32_t callee : rules[r].calls) append_number(key, made[callee] ? made[callee]->id << 1 | 1 : uint64_t{place[callee]} << 1);
    }
    return key;
}

/// The units that a component calls and has to hold; they are there already.
std::vector<std::shared_ptr<Unit>> callees_of(const std::vector<uint32_t> &component, const std::vector<RuleCode> &rules,
                                              const std::vector<std::shared_ptr<Unit>> &units) {
    std::vector<uint32_t> called;
    for (uint32_t r : component)
        for (uint32_t callee : rules[r].calls)
            if (units[callee]) called.push_back(callee);
    const auto unit = [&](uint32_t callee) { return units[callee].get(); };
    std::sort(called.begin(), called.end(), [&](uint32_t a, uint32_t b) { return unit(a) < unit(b); });
    called.erase(std::unique(called.begin(), called.end(), [&](uint32_t a, uint32_t b) { return unit(a) == unit(b); }), called.end());
    std::vector<std::shared_ptr<Unit>> callees;
    callees.reserve(called.size());
    for (uint32_t callee : called) callees.push_back(units[callee]);
    return callees;
}

}  // namespace

Store::Store(Vocab vocab, size_t cache_bytes, Shortcuts with)
    : shortcuts(with), id_(++last_store), vocab_(std::move(vocab)), key_tokens_(vocab_),
      masks_(std::make_unique<MaskCache>(*this, cache_bytes)) {}

Store::~Store() = default;

Grammar::~Grammar() {
    const std::lock_guard guard(store->lock());
    unit.reset();
}

size_t Store::mask_bytes() const { return masks_->bytes(); }

Automaton &Store::automaton(Rule &rule) {
    if (!rule.automaton) rule.automaton = std::make_unique<Automaton>(rule, *this);
    return *rule.automaton;
}

uint32_t Store::name_id(const std::string &name) {
    const auto [it, fresh] = name_ids_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (fresh) names_.push_back(&it->first);
    return it->second;
}

void Store::bury(Unit *unit) {
    // Long chains of units would otherwise be freed by recursion.
    interned_.remove(*unit);
    graves_.push_back(unit);
    if (burying_) return;
    burying_ = true;
    while (!graves_.empty()) {
        Unit *next = graves_.back();
        graves_.pop_back();
        delete next;
    }
    burying_ = false;
}

void Store::release(std::vector<std::shared_ptr<Unit>> units) {
    const std::lock_guard guard(lock_);
    units.clear();
}

std::shared_ptr<Grammar> Store::compile(Program program, std::vector<KnownRule> *places) {
    const std::lock_guard guard(lock_);
    std::vector<RuleCode> &rules = program.rules;
    std::vector<Rule *> made(rules.size(), nullptr);
    std::vector<uint32_t> place(rules.size(), kNone);
    std::vector<std::shared_ptr<Unit>> units(rules.size());  // of `made`
    std::vector<Ast> trees;
    for (size_t r = 0; r < rules.size(); ++r) {
        made[r] = rules[r].known;
        if (rules[r].held != kNone) units[r] = std::move(program.held[rules[r].held]);
    }
    for (std::vector<uint32_t> &component : components(rules)) {
        order_by_first_call(component, rules, place);
        std::string key = key_of(component, rules, made, place);
        Unit *known = interned_.find(key);
        std::shared_ptr<Unit> unit = known ? known->weak_from_this().lock() : nullptr;
        if (!unit) {
            unit = std::shared_ptr<Unit>(new Unit, UnitDeleter{this});
            unit->key = std::move(key);
            unit->callees = callees_of(component, rules, units);
            unit->rules.reserve(component.size());
            size_t at = 0;
            for (uint32_t r : component) {
                unit->rules.push_back(std::make_unique<Rule>());
                Rule &rule = *unit->rules.back();
                rule.id = next_id();
                rule.unit = unit.get();
                rule.code = std::string_view(unit->key).substr(at + sizeof(uint64_t), rules[r].code.size());
                at += (1 + rules[r].calls.size()) * sizeof(uint64_t) + rules[r].code.size();
                made[r] = &rule;
            }
            for (uint32_t r : component) {
                made[r]->calls.reserve(rules[r].calls.size());
                for (uint32_t callee : rules[r].calls) made[r]->calls.push_back(made[callee]);
            }
            Facts(*unit, vocab_, trees).find();
            interned_.add(*unit);
        } else {
            for (size_t i = 0; i < component.size(); ++i) made[component[i]] = unit->rules[i].get();
        }
        for (uint32_t r : component) units[r] = unit;
    }
    if (made[0]->keeps_set && !(program.init == Counter{})) throw InputError("members in any order are called with bounds");
    if (!made[0]->matches(program.init)) throw InputError("the grammar matches nothing, not even the empty string");
    if (places) {
        places->resize(rules.size());
        for (size_t i = 0; i < rules.size(); ++i)
            if (!rules[i].known) (*places)[i] = {made[i], units[i]};
    }
    auto grammar = std::make_shared<Grammar>();
    grammar->store = shared_from_this();
    grammar->unit = units[0];
    grammar->root = made[0];
    grammar->init = program.init;
    grammar->ends_keys = units[0]->ends_keys;
    grammar->bounds_keys = units[0]->bounds_keys;
    return grammar;
}

Program Store::program_of(const Grammar &grammar) {
    const std::lock_guard guard(lock_);
    Program program;
    program.init = grammar.init;
    std::unordered_map<const Rule *, uint32_t> place{{grammar.root, 0}};
    std::vector<const Rule *> order{grammar.root};
    for (size_t i = 0; i < order.size(); ++i) {
        RuleCode &out = program.rules.emplace_back();
        out.code = order[i]->code;
        for (const Rule *callee : order[i]->calls) {
            const auto [it, fresh] = place.try_emplace(callee, static_cast<uint32_t>(order.size()));
            if (fresh) order.push_back(callee);
            out.calls.push_back(it->second);
        }
    }
    return program;
}

}  // namespace dovetail
