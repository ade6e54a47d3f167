// Everything that grammars over one vocabulary share: rules interned by content, their automata, cached masks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "automaton/automaton.h"
#include "base/lock.h"
#include "grammar/code.h"
#include "matcher/key_tokens.h"
#include "grammar/rule.h"
#include "mask/shortcuts.h"
#include "grammar/units.h"
#include "vocabulary/vocab.h"

namespace dovetail {

class MaskCache;

/// A compiled grammar: an entry point into the store's shared rules. Nothing is computed before it is needed.
struct Grammar {
    std::shared_ptr<Store> store;
    std::shared_ptr<Unit> unit;
    Rule *root;
    Counter init;
    bool ends_keys, bounds_keys;  // see Unit

    ~Grammar();
};

/// A rule of a store, as long as some grammar holds it.
struct KnownRule {
    Rule *rule = nullptr;
    std::weak_ptr<Unit> unit;
};

/// One lock guards the store, its grammars and their matchers; every public function of Grammar users takes it. Masks that
/// are known are read by many threads at once.
class Store : public std::enable_shared_from_this<Store> {
  public:
    Store(Vocab vocab, size_t cache_bytes, Shortcuts shortcuts = {});
    ~Store();

    /// `places` gets what each rule of the program has become that was not known.
    std::shared_ptr<Grammar> compile(Program program, std::vector<KnownRule> *places = nullptr);
    /// Lets go of units that nobody else may hold any more.
    void release(std::vector<std::shared_ptr<Unit>> units);
    Program program_of(const Grammar &grammar);

    uint64_t id() const { return id_; }  // of no other store, not even of one that is gone
    const Vocab &vocab() const { return vocab_; }
    const KeyTokens &key_tokens() const { return key_tokens_; }
    Lock &lock() { return lock_; }
    Automaton &automaton(Rule &rule);
    const Shortcuts shortcuts;
    MaskCache &masks() { return *masks_; }
    Workspace &workspace() { return workspace_; }
    uint64_t next_id() { return ++last_id_; }
    uint32_t name_id(const std::string &name);
    const std::string &name(uint32_t id) const { return *names_[id]; }

    void account(int64_t bytes) { automaton_bytes_ = static_cast<size_t>(static_cast<int64_t>(automaton_bytes_) + bytes); }
    size_t automaton_bytes() const { return automaton_bytes_; }
    size_t mask_bytes() const;

  private:
    friend struct UnitDeleter;

    void bury(Unit *unit);

    const uint64_t id_;
    Vocab vocab_;
    KeyTokens key_tokens_;
    Lock lock_;
    Units interned_;
    std::unordered_map<std::string, uint32_t> name_ids_;
    std::vector<const std::string *> names_;
    std::unique_ptr<MaskCache> masks_;
    Workspace workspace_;
    std::vector<Unit *> graves_;
    bool burying_ = false;
    uint64_t last_id_ = 0;
    size_t automaton_bytes_ = 0;
};

}  // namespace dovetail
