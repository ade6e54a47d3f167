// The keys of the JSON objects that an output has open, so that none comes twice.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/common.h"

namespace dovetail {

/// The beginning of a key, hashed. A key has one spelling, so keys are equal where their texts are.
struct KeyHash {
    uint64_t hash = 0x9ae16a3b2f90404full;
    bool escaped = false;  // a backslash takes the next byte

    void feed(uint8_t byte) {
        hash = mix(hash, byte);
        escaped = !escaped && byte == '\\';
    }
};

inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

/// Reads the output beside the automaton, from the first key on that a grammar asks about.
///
/// The automaton says where a key has ended. If this is where the reader sees one end, it belongs to the innermost
/// object of the reader; if not, no key of that object was asked about before, and reading begins anew: where the object
/// began the reader was off, or inside of what it took for a string, and what cannot be in JSON turns it off: a backslash
/// outside of strings, a key without a colon.
class ObjectKeys {
  public:
    enum Where : uint8_t { kBeforeKey, kInKey, kBehindKey, kInString, kElsewhere };

    /// One more byte of the output.
    void read(uint8_t byte) {
        output_.push_back(static_cast<char>(byte));
        if (now_.open != kNone) follow(byte);
    }
    /// A key has ended with the last byte: may it, or was it there before? ObjectKeys that do not `grow` are few enough that all
    /// that go on from some place may be there.
    bool ended(bool grows);
    /// Keeps what was read as one step.
    void commit() {
        now_.size = output_.size();
        history_.push_back(now_);
    }
    /// Takes back what was read since the last step.
    void undo();
    void rollback(size_t steps);

    bool on() const { return now_.open != kNone; }
    Where where() const { return now_.where; }
    /// Inside a string, whose next byte a backslash takes.
    bool escaped() const { return now_.escaped; }
    const KeyHash &key() const { return now_.key; }
    /// Has the innermost object keys at all, and perhaps one with this hash?
    bool has_keys() const { return brackets_[now_.open].keys > 0; }
    bool may_have(const KeyHash &key) const { return known_.contains(place(key)); }

    // Of keys that do not grow: their beginnings, and those of them that may only lead to keys that are there. What else they
    // lead to depends on the keys that are declared, so a matcher looks when it comes there.

    /// Has an open object doubtful beginnings?
    bool has_doubt() const { return on() && brackets_[now_.open].has_doubt(); }
    /// The last byte is a quote that no backslash takes.
    bool is_behind_quote() const { return !output_.empty() && is_quote(output_.size() - 1); }
    /// A key that does not grow has ended with the last byte, and its beginnings are to be learned; its text, and where it
    /// began.
    bool is_pending() const { return now_.keys > 0 && keys_.back().is_pending && keys_.back().end + 1 == output_.size(); }
    std::string pending() const { return text(keys_.back().begin, keys_.back().end); }
    size_t pending_begin() const { return keys_.back().begin; }
    void settle_pending() { keys_.back().is_pending = false; }
    void add_beginning(const KeyHash &key, bool doubtful);
    bool is_beginning(const KeyHash &key) const { return beginnings_.contains(place(key)); }
    bool is_doubtful(const KeyHash &key) const {
        const auto it = beginnings_.find(place(key));
        return it != beginnings_.end() && it->second;
    }
    /// Does the output break off where it may be that only keys go on that are there?
    bool may_be_stuck() const {
        if (!has_doubt()) return false;
        if (now_.where == kInKey) return is_doubtful(now_.key);
        return now_.where == kBeforeKey && is_doubtful({});
    }
    std::string_view output() const { return output_; }

  private:
    struct Bracket {
        uint32_t parent;
        bool is_object;
        bool inside_doubt = false;  // an object around it has doubtful beginnings
        uint32_t keys = 0, doubtful = 0;

        bool has_doubt() const { return inside_doubt || doubtful > 0; }
    };
    struct Key {
        uint64_t hash;  // with the object
        uint32_t object;
        size_t begin, end;  // in the output, without quotes
        bool is_pending;
    };
    /// A beginning that was added, or is in doubt now.
    struct Change {
        uint64_t hash;
        uint32_t object;
        bool added, doubtful;
    };
    /// Where the reader is; brackets and keys are only ever added, so that their number takes it back.
    struct State {
        size_t size = 0;        // of the output
        uint32_t open = kNone;  // the innermost bracket; none: off
        uint32_t brackets = 0, keys = 0, beginnings = 0;
        size_t string = 0;  // where the last string began, behind its quote
        KeyHash key;
        Where where = kElsewhere;
        bool escaped = false;
    };

    void follow(uint8_t byte);
    void open(bool is_object);
    bool begin_anew();
    bool is_quote(size_t at) const;
    std::string text(size_t begin, size_t end) const { return output_.substr(begin, end - begin); }
    /// A text in the innermost object.
    uint64_t place(const KeyHash &key) const { return mix(key.hash, now_.open); }

    std::string output_;
    std::vector<Bracket> brackets_;
    std::vector<Key> keys_;
    std::unordered_multimap<uint64_t, uint32_t> known_;  // by hash, into keys_
    std::unordered_map<uint64_t, bool> beginnings_;      // by hash, and whether they are doubtful
    std::vector<Change> changes_;                        // of the beginnings
    State now_;
    std::vector<State> history_{{}};
};

/// Takes back whatever was read and not kept as a step when its time is over, also by an exception.
class Undone {
  public:
    explicit Undone(ObjectKeys *keys) : keys_(keys) {}
    ~Undone() {
        if (keys_) keys_->undo();
    }
    Undone(const Undone &) = delete;

  private:
    ObjectKeys *keys_;
};

}  // namespace dovetail
