// The schemas that most documents are made of, read without a step through Python.
#pragma once

#include <optional>
#include <vector>

#include "nodes.h"

namespace dovetail {

/// Nearly every request brings a new small schema, and where other code ran before, each function of Python that looks
/// at it waits for memory. What is common is read here, from the tables of a `Lowering` and into them; what is not, the
/// lowering reads itself. One glance serves all documents of the same settings.
class Glance {
  public:
    /// The nodes that all documents share, see dovetail.grammar.json_schema.text.Pieces.
    Glance(const nb::dict &by_type, const nb::dict &key_ends, nb::dict lists, nb::object anything, nb::tuple ws,
           nb::tuple comma, nb::object colon, bool excludes);

    /// The values that a schema admits.
    nb::object value(nb::handle lowering, const nb::dict &schema, const nb::tuple &where) const;
    /// The object of a schema that only declares; None where it says more, or something is wrong with it.
    nb::object declared(nb::handle lowering, const nb::dict &schema, const nb::tuple &where) const;
    /// Makes the bodies of pending rules until one comes that the lowering makes itself; None where none is left.
    nb::object next(nb::handle lowering) const;
    /// An object with its members in any order: those of `names` that are not absent, and where it is open any others.
    nb::object freely(const nb::list &names, const nb::list &values, nb::handle needed, nb::handle absent, bool open) const;

  private:
    struct Type {
        std::string word;
        nb::object name, node;
    };
    struct Members {
        nb::list names, values, needs;
        nb::set needed;
        bool open = false;
    };

    template <class Where> nb::object single(nb::handle lowering, nb::handle schema, const Where &where) const;
    template <class Where>
    nb::object typed(nb::handle lowering, const Type &type, nb::handle schema, nb::handle id, const Where &where) const;
    nb::object untyped(nb::handle schema, nb::handle type) const;
    bool make_body(nb::handle lowering, nb::handle rule, nb::handle kinds) const;
    nb::object listed(nb::handle lowering, nb::handle schema, nb::handle where) const;
    std::optional<Members> members(nb::handle lowering, nb::handle schema, nb::handle where) const;
    nb::object body(nb::handle lowering, const Members &members) const;
    nb::object in_order(const Members &members) const;
    nb::object one_of(nb::handle words) const;
    nb::object quoted(nb::handle text) const;
    nb::object member(nb::handle name, nb::handle value) const;
    nb::object others(const nb::list &names) const;
    const Type *type_of(nb::handle name) const;

    std::vector<Type> types_;
    std::vector<std::pair<PyObject *, nb::object>> ends_;  // of declared members, by common values
    nb::object other_end_;                                 // of members that are not declared
    nb::dict lists_;
    nb::object anything_, colon_, separator_;
    nb::tuple ws_, comma_;
    bool excludes_;
};

}  // namespace dovetail
