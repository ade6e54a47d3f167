// One generation: masks out, tokens or bytes in, captures out, and back again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "matcher/object_keys.h"
#include "matcher/stacks.h"
#include "grammar/store.h"

namespace dovetail {

/// A capture opened or closed at a byte of the output.
struct CaptureMark {
    uint64_t at;
    std::string name;
    bool open;
};

/// Not safe to use from two threads at once; different matchers of one grammar are.
class Matcher {
  public:
    /// `stops` end the output, beside those of the vocabulary or, with `only`, alone. Before the output is complete they
    /// are no text. Without any, the output ends by itself where it is complete and nothing can follow.
    explicit Matcher(std::shared_ptr<Grammar> grammar, const std::vector<uint32_t> &stops = {}, bool only = false);
    Matcher(const Matcher &other);
    ~Matcher();
    Matcher &operator=(const Matcher &) = delete;

    const std::shared_ptr<Grammar> &grammar() const { return grammar_; }
    size_t mask_words() const { return store_.vocab().mask_words(); }

    /// Set bit t % 32 of out[t / 32] exactly when token t may come next; all mask_words() words are overwritten.
    /// After the end no bit is set.
    void fill_mask(uint32_t *out);
    /// False, and no change, where the token may not come next; a MisuseError where there is no such token.
    bool accept(int64_t id);
    /// All of the bytes or none of them; token budgets do not count them.
    bool accept_bytes(std::string_view bytes);
    /// Takes tokens in a row; how many, as none is taken behind one that may not come or does not exist, or behind the end.
    size_t accept_tokens(const int64_t *tokens, size_t count);
    /// How many of the tokens could be accepted in a row; an id that does not exist ends the row.
    size_t validate(const int64_t *tokens, size_t count);
    /// Takes back that many calls of accept and accept_bytes that returned true.
    void rollback(size_t steps);
    void reset();
    /// The bytes that must come next, whatever the model wants.
    std::string forced();
    bool is_complete() const { return finished_ || now().complete; }
    bool is_finished() const { return finished_; }
    size_t steps() const { return history_.size() - 1; }
    uint64_t position() const { return position_.back(); }
    std::vector<CaptureMark> captures() const;

    // What a Mover asks of its world.
    const Mark *opened(const CallSite &site, const Mark *marks);
    const Mark *closed(const CallSite &site, uint32_t exit, const Mark *marks);
    void bottom(uint32_t exit, const Mark *marks, Stacks &out);
    bool key_ended(bool grows) {
        met_key_ = true;
        return replaying_ || keys_->ended(grows);
    }

  private:
    const Stacks &now() const { return history_.back(); }
    bool exists(int64_t token) const;
    bool is_stop(uint32_t token) const;
    void fill_now(uint32_t *out);
    void finish_mask(uint32_t *out) const;
    bool is_named(uint32_t token) const;
    bool allows_now(uint32_t token);
    void end_by_itself();
    void start();
    bool try_token(uint32_t token, Stacks &next);
    Stacks before_token() const;
    /// The last quote that was passed, where some keys do not grow: one of them may have begun there.
    struct Quote {
        Stacks stacks;  // behind it
        uint64_t at = 0;
    };
    bool take_bytes(const Stacks &from, std::string_view bytes, bool count_tokens, Stacks &out, Quote &quote);
    bool take_bytes(const Stacks &from, std::string_view bytes, bool count_tokens, Stacks &out) {
        Quote quote;
        return take_bytes(from, bytes, count_tokens, out, quote);
    }
    void commit(Stacks next, uint64_t position);

    // What the keys that an object has leave, see matcher_keys.cpp.
    class Scratch;
    void drop_known_keys(uint32_t *mask);
    void drop_doubtful(uint32_t *mask);
    void drop_along(uint32_t node, const KeyHash &key, uint32_t *mask);
    void drop_below(uint32_t node, uint32_t *mask);
    bool reads(std::string_view bytes);
    bool allows(uint32_t token);
    void pass_quote(const Stacks &behind, Quote &last);
    void learn_beginnings(Stacks at);
    Stacks replayed(uint64_t to);
    bool can_go_on(const Stacks &at);
    bool has_other_key(const Stacks &at, const KeyHash &key);
    bool has_other_key(const Stacks &at, const KeyHash &key, int &budget);
    bool has_undeclared_key(const Stacks &at, const KeyHash &key);
    Stacks stepped(const Stacks &from, uint8_t byte);

    void collect();
    void copy_live(const std::vector<Stacks> &from);

    std::shared_ptr<Grammar> grammar_;
    Store &store_;
    std::vector<uint32_t> stops_, text_stops_;  // the latter are stops of the request that could be text
    std::unique_ptr<Arena<Frame>> frames_;
    std::unique_ptr<Arena<Mark>> marks_;
    std::unique_ptr<Mover<Matcher>> mover_;
    std::vector<Stacks> history_;       // one entry per step, the start first
    std::vector<uint64_t> position_;    // bytes of output, likewise
    std::unique_ptr<ObjectKeys> keys_;  // where the grammar asks about keys
    bool replaying_ = false;            // bytes are tried: no key is asked about
    bool met_key_ = false;              // the end of one that would be
    uint64_t at_ = 0;                   // while bytes are being taken
    bool finished_ = false;
    size_t collect_at_ = 4096;
};

/// Fills one row for each matcher, with ones where it has finished; their vocabularies may differ, but not in size.
void fill_masks(const std::vector<Matcher *> &matchers, const std::vector<uint32_t *> &rows);

}  // namespace dovetail
