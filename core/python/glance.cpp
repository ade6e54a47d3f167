#include "glance.h"

#include <algorithm>
#include <utility>

namespace dovetail {

namespace {

/// Keywords as bits.
enum : unsigned { kType = 1, kProperties = 2, kRequired = 4, kAdditional = 8, kItems = 16, kEnum = 32, kOther = 64 };

nb::object interned(const char *text) { return nb::steal(PyUnicode_InternFromString(text)); }

/// The names of dovetail.grammar.json_schema, looked up once.
struct Names {
    static nb::object of(const char *module, const char *name) {
        return nb::module_::import_((std::string("dovetail.grammar.json_schema.") + module).c_str()).attr(name);
    }
    nb::object lowering = of("lowering", "Lowering");
    Field done{lowering, "_done"}, composites{lowering, "_composites"}, pending{lowering, "_pending"}, ways{lowering, "_ways"};
    Field strict{lowering, "strict"}, free_order{lowering, "free_order"};
    nb::object keywords = of("reading", "KEYWORDS"), of_arrays = of("reading", "ARRAY_KEYWORDS");
    nb::object uncommon = of("shapes", "UNCOMMON");
    nb::object is_object = of("facts", "OBJECT"), is_array = of("facts", "ARRAY");
    size_t most_composites = nb::cast<size_t>(of("lowering", "MAX_COMPOSITES"));
    size_t most_members = nb::cast<size_t>(of("members", "MAX_ANY_ORDER"));
    nb::object escapes = of("text", "ESCAPES"), quote = of("text", "QUOTE"), quoted = of("text", "quoted");
    nb::object open = of("text", "OPEN"), close = of("text", "CLOSE"), first = of("text", "FIRST"), last = of("text", "LAST");
    nb::object other_member = of("keys", "other_member");
    nb::object empty = nb::module_::import_("dovetail.grammar.ir").attr("EMPTY");
    nb::object quote_data = nb::borrow(ir().lit_data(quote));
    nb::object type = interned("type"), properties = interned("properties"), required = interned("required");
    nb::object additional = interned("additionalProperties"), items = interned("items"), choices = interned("enum");
    nb::object description = interned("description"), otherwise = interned("otherwise");
    nb::object object_name = interned("object"), array_name = interned("array"), member_name = interned("member");
    nb::object zero = nb::int_(0), one = nb::int_(1), no_quote = nb::bytes("", 0);
};

const Names &names() {
    static const Names *found = new Names;  // never freed, as ir()
    return *found;
}

// Nodes, made as their own __init__ would.

using Value = std::pair<const Field &, nb::handle>;

template <class... Values> nb::object make(const nb::object &type, Values... values) {
    nb::object made = nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type.ptr()), 0));
    if (!made.is_valid()) throw nb::python_error();
    (values.first.set(made, nb::borrow(values.second)), ...);
    return made;
}

nb::object seq(nb::handle parts) { return make(ir().seq, Value(ir().seq_parts, parts)); }
nb::object alt(nb::handle parts) { return make(ir().alt, Value(ir().alt_parts, parts)); }
nb::object call(nb::handle rule) { return make(ir().call, Value(ir().call_rule, rule)); }

nb::object rule(nb::handle name, nb::handle body) {
    return make(ir().rule, Value(ir().rule_name, name), Value(ir().rule_body, body), Value(ir().rule_compiled, Py_None));
}

nb::object repeat(nb::handle body, nb::handle high) {
    return make(ir().repeat, Value(ir().repeat_body, body), Value(ir().repeat_low, names().zero), Value(ir().repeat_high, high));
}

nb::object optional(nb::handle body) { return repeat(body, names().one); }

bool is_nothing(nb::handle node) {
    return is_a(node, ir().alt) && length(ir().alt_parts(node)) == 0;
}

// What Python holds.

/// The value of a key, or no object; it belongs to the dictionary.
nb::handle get(nb::handle dict, const nb::object &key) {
    PyObject *found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

void put(nb::handle dict, nb::handle key, nb::handle value) {
    if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr())) throw nb::python_error();
}

bool contains(nb::handle names, nb::handle key) {
    const int found = PySequence_Contains(names.ptr(), key.ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
}

nb::object identity(nb::handle object) {
    nb::object found = nb::steal(PyLong_FromVoidPtr(object.ptr()));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

std::string_view ascii(nb::handle text) {
    if (!PyUnicode_CheckExact(text.ptr()) || !PyUnicode_IS_COMPACT_ASCII(text.ptr())) return {};
    return {static_cast<const char *>(PyUnicode_DATA(text.ptr())), static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr()))};
}

bool is_ascii(nb::handle text) { return PyUnicode_IS_ASCII(text.ptr()); }

/// Whether there is nothing but strings in a list.
bool all_strings(nb::handle list) {
    if (!PyList_CheckExact(list.ptr())) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.ptr()); ++i)
        if (!PyUnicode_CheckExact(PyList_GET_ITEM(list.ptr(), i))) return false;
    return true;
}

void extend(nb::list &list, const nb::tuple &more) {
    for (nb::handle one : more) list.append(one);
}

/// The keywords of a schema, those that are in `others` and are none of the common ones as one.
unsigned keywords_of(nb::handle schema, const nb::object &others) {
    unsigned found = 0;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(schema.ptr(), &at, &key, &value);) {
        const std::string_view word = ascii(key);
        if (word == "type") found |= kType;
        else if (word == "properties") found |= kProperties;
        else if (word == "required") found |= kRequired;
        else if (word == "additionalProperties") found |= kAdditional;
        else if (word == "items") found |= kItems;
        else if (word == "enum") found |= kEnum;
        else if (word != "description" && word != "title" && contains(others, key)) found |= kOther;
    }
    return found;
}

/// Nothing is said but the type.
bool is_bare(nb::handle schema) {
    const Py_ssize_t size = PyDict_GET_SIZE(schema.ptr());
    return size == 1 || (size == 2 && get(schema, names().description).is_valid());
}

/// The rule of one object or array, the same wherever this schema alone applies; none where there are too many.
nb::object composite(nb::handle lowering, const nb::object &kind, const nb::object &name, nb::handle schema, nb::handle id,
                     nb::handle where) {
    const nb::handle known = names().composites(lowering);
    const nb::tuple key = nb::make_tuple(nb::make_tuple(kind, id));
    if (const nb::handle found = get(known, key); found.is_valid()) return nb::borrow(PyTuple_GET_ITEM(found.ptr(), 0));
    if (static_cast<size_t>(PyDict_GET_SIZE(known.ptr())) >= names().most_composites) return {};
    const nb::object made = rule(name, names().empty);
    nb::list kinds;
    kinds.append(nb::make_tuple(kind, nb::make_tuple(nb::make_tuple(schema, where))));
    nb::borrow<nb::list>(names().pending(lowering)).append(nb::make_tuple(made, kinds));
    nb::object found = call(made);
    put(known, key, nb::make_tuple(found, kinds));
    return found;
}

/// A place in a schema; mostly nobody asks for it.
struct Place {
    nb::handle parent, key;
};

nb::tuple whole(const Place &where) { return nb::make_tuple(where.parent, where.key); }
nb::tuple whole(const nb::tuple &where) { return where; }

}  // namespace

Glance::Glance(const nb::dict &by_type, const nb::dict &key_ends, nb::dict lists, nb::object anything, nb::tuple ws,
               nb::tuple comma, nb::object colon, bool excludes)
    : lists_(std::move(lists)), anything_(std::move(anything)), colon_(std::move(colon)), separator_(seq(comma)), ws_(std::move(ws)), comma_(std::move(comma)),
      excludes_(excludes) {
    for (const auto &[name, node] : by_type)
        types_.push_back({std::string(text_of(name)), nb::borrow(name), nb::borrow(node)});
    for (const auto &[id, end] : key_ends) {
        PyObject *value = static_cast<PyObject *>(PyLong_AsVoidPtr(id.ptr()));
        if (anything_.is(value)) other_end_ = nb::borrow(end);
        ends_.emplace_back(value, end.attr("declared"));
    }
}

/// Null where it is none.
const Glance::Type *Glance::type_of(nb::handle name) const {
    if (!name.is_valid()) return nullptr;
    const std::string_view word = ascii(name);
    for (const Type &type : types_)
        if (word == type.word) return &type;
    return nullptr;
}

nb::object Glance::value(nb::handle lowering, const nb::dict &schema, const nb::tuple &where) const {
    return single(lowering, schema, where);
}

template <class Where> nb::object Glance::single(nb::handle lowering, nb::handle schema, const Where &where) const {
    const nb::handle name = get(schema, names().type);
    const Type *type = type_of(name);
    if (type && is_bare(schema)) return type->node;
    const nb::object id = identity(schema);
    const nb::handle done = names().done(lowering);
    if (const nb::handle known = get(done, id); known.is_valid()) return nb::borrow(known);
    nb::object found = type ? typed(lowering, *type, schema, id, where) : untyped(schema, name);
    if (!found.is_valid()) return lowering.attr(names().otherwise)(schema, whole(where));
    put(done, id, found);
    return found;
}

/// A value of one type about which little is said; none where it is more.
template <class Where>
nb::object Glance::typed(nb::handle lowering, const Type &type, nb::handle schema, nb::handle id, const Where &where) const {
    const Names &known = names();
    const unsigned words = keywords_of(schema, known.keywords);
    if (words == kType) return type.node;
    if (words & kOther) return {};
    const std::string_view name = type.word;
    if (name == "object" && !(words & (kItems | kEnum)))
        return composite(lowering, known.is_object, known.object_name, schema, id, whole(where));
    if (name == "array" && words == (kType | kItems)) {
        const nb::handle item = get(schema, known.items);
        if (PyList_Check(item.ptr())) return {};
        if (PyDict_CheckExact(item.ptr()) && is_bare(item))
            if (const Type *inner = type_of(get(item, known.type))) return nb::borrow(get(lists_, inner->name));
        return composite(lowering, known.is_array, known.array_name, schema, id, whole(where));
    }
    if (name == "string" && words == (kType | kEnum)) return one_of(get(schema, known.choices));
    return {};
}

/// The same of any type or of several.
nb::object Glance::untyped(nb::handle schema, nb::handle type) const {
    const unsigned words = keywords_of(schema, names().keywords);
    if (!words) return anything_;
    if (words == kEnum) return one_of(get(schema, names().choices));
    if (words != kType || !all_strings(type) || PyList_GET_SIZE(type.ptr()) == 0) return {};
    nb::list ways;
    nb::dict seen;
    for (nb::handle name : nb::borrow<nb::list>(type)) {
        const Type *one = type_of(name);
        if (!one) return {};
        seen[one->name] = one->node;
    }
    for (const auto &[name, node] : seen)
        if (ascii(name) != "integer" || !seen.contains("number")) ways.append(node);
    return ways.size() == 1 ? nb::object(ways[0]) : alt(nb::tuple(ways));
}

/// One of these words; none where something else is listed.
nb::object Glance::one_of(nb::handle words) const {
    if (excludes_ || !all_strings(words) || PyList_GET_SIZE(words.ptr()) == 0) return {};
    nb::list ways;
    nb::set seen;
    for (nb::handle word : nb::borrow<nb::list>(words)) {
        if (!is_ascii(word)) return {};
        if (contains(seen, word)) continue;
        seen.add(word);
        ways.append(quoted(word));
    }
    return ways.size() == 1 ? nb::object(ways[0]) : alt(nb::tuple(ways));
}

nb::object Glance::quoted(nb::handle text) const {
    if (!is_ascii(text)) return names().quoted(text);
    return make(ir().spelled, Value(ir().spelled_text, text), Value(ir().spelled_spellings, names().escapes),
                Value(ir().spelled_quote, names().quote_data));
}

nb::object Glance::next(nb::handle lowering) const {
    const nb::list pending = nb::borrow<nb::list>(names().pending(lowering));
    while (const size_t size = pending.size()) {
        const nb::object last = pending[size - 1];
        if (PyList_SetSlice(pending.ptr(), static_cast<Py_ssize_t>(size) - 1, static_cast<Py_ssize_t>(size), nullptr))
            throw nb::python_error();
        if (!make_body(lowering, PyTuple_GET_ITEM(last.ptr(), 0), PyTuple_GET_ITEM(last.ptr(), 1))) return last;
    }
    return nb::none();
}

/// False where the rule is of several schemas, or of one that says more.
bool Glance::make_body(nb::handle lowering, nb::handle rule, nb::handle kinds) const {
    if (PyList_GET_SIZE(kinds.ptr()) > 1) return false;
    const nb::handle first = PyList_GET_ITEM(kinds.ptr(), 0);
    const nb::handle kind = PyTuple_GET_ITEM(first.ptr(), 0), parts = PyTuple_GET_ITEM(first.ptr(), 1);
    if (PySequence_Size(parts.ptr()) > 1) return false;
    const nb::object part = parts[0], schema = part[0], where = part[1];
    if (!PyDict_Check(schema.ptr())) return false;
    nb::list needs, ways;
    nb::object made;
    if (kind.is(names().is_array)) {
        made = listed(lowering, schema, where);
    } else if (!excludes_) {
        if (const auto found = members(lowering, schema, where)) {
            made = body(lowering, *found);
            needs = found->needs;
        }
    }
    if (!made.is_valid()) return false;
    ir().rule_body.set(rule, std::move(made));
    ways.append(needs);
    put(names().ways(lowering), identity(rule), ways);
    return true;
}

/// An array of which nothing is said but of its items.
nb::object Glance::listed(nb::handle lowering, nb::handle schema, nb::handle where) const {
    const Names &known = names();
    const nb::object item = nb::borrow(get(schema, known.items));
    if (!item.is_valid() || !PyDict_CheckExact(item.ptr()) || (keywords_of(schema, known.of_arrays) & kOther)) return {};
    const nb::object value = single(lowering, item, Place{where, known.items});
    if (is_nothing(value)) return {};
    nb::list next, inside, parts;
    extend(next, comma_);
    next.append(value);
    extend(next, ws_);
    if (is_a(value, ir().seq)) inside.extend(ir().seq_parts(value));
    else inside.append(value);
    extend(inside, ws_);
    inside.append(repeat(seq(nb::tuple(next)), nb::none()));
    parts.append(known.first);
    extend(parts, ws_);
    parts.append(optional(seq(nb::tuple(inside))));
    parts.append(known.last);
    return seq(nb::tuple(parts));
}

nb::object Glance::declared(nb::handle lowering, const nb::dict &schema, const nb::tuple &where) const {
    const auto found = members(lowering, schema, where);
    if (!found) return nb::none();
    lowering.attr("need")(found->needs);
    return body(lowering, *found);
}

std::optional<Glance::Members> Glance::members(nb::handle lowering, nb::handle schema, nb::handle where) const {
    const Names &known = names();
    const nb::handle declared = get(schema, known.properties), required = get(schema, known.required);
    const nb::handle others = get(schema, known.additional);
    if (!declared.is_valid() || !PyDict_CheckExact(declared.ptr())) return {};
    const auto size = static_cast<size_t>(PyDict_GET_SIZE(declared.ptr()));
    if (size == 0 || size > known.most_members || (keywords_of(schema, known.uncommon) & kOther)) return {};
    if (required.is_valid() && !all_strings(required)) return {};
    if (others.is_valid() && !PyBool_Check(others.ptr())) return {};
    Members found;
    found.open = others.is_valid() ? others.is(Py_True) : !known.strict(lowering).is(Py_True);
    if (required.is_valid())
        for (nb::handle name : nb::borrow<nb::list>(required)) {
            if (!get(declared, nb::borrow(name)).is_valid()) return {};
            found.needed.add(name);
        }
    if (!known.free_order(lowering).is(Py_True) && (found.open || found.needed.size() == 0)) return {};
    const nb::tuple at = nb::make_tuple(where, known.properties);
    PyObject *key, *node;
    for (Py_ssize_t next = 0; PyDict_Next(declared.ptr(), &next, &key, &node);) {
        if (!PyDict_CheckExact(node)) return {};
        const nb::object name = nb::borrow(key), inner = nb::borrow(node);  // whatever the lowering does in between
        const nb::object value = single(lowering, inner, Place{at, name});
        if (is_nothing(value)) return {};
        found.names.append(name);
        found.values.append(value);
        if (contains(found.needed, name)) found.needs.append(value);
    }
    return found;
}

nb::object Glance::body(nb::handle lowering, const Members &members) const {
    if (!names().free_order(lowering).is(Py_True)) return in_order(members);
    return freely(members.names, members.values, members.needed, nb::tuple(), members.open);
}

nb::object Glance::freely(const nb::list &all, const nb::list &values, nb::handle needed, nb::handle absent, bool open) const {
    const Names &known = names();
    if (all.size() != values.size()) throw InputError("a member has no value");
    nb::list members;
    for (size_t i = 0; i < all.size(); ++i) {
        const nb::object name = all[i];
        if (!contains(absent, name)) members.append(nb::make_tuple(member(name, values[i]), nb::bool_(contains(needed, name))));
    }
    nb::object extra = nb::none();
    if (open) extra = seq(nb::make_tuple(call(rule(known.member_name, others(all)))));
    const nb::object order = make(ir().any_order, Value(ir().any_members, nb::tuple(members)), Value(ir().any_extra, extra),
                                  Value(ir().any_separator, separator_), Value(ir().any_close, known.close),
                                  Value(ir().any_started, Py_False));
    nb::list parts;
    parts.append(known.open);
    extend(parts, ws_);
    parts.append(order);
    return seq(nb::tuple(parts));
}

/// A declared key with its value, in whatever spelling; members whose values are common share their ends.
nb::object Glance::member(nb::handle name, nb::handle value) const {
    const Names &known = names();
    const auto end = std::find_if(ends_.begin(), ends_.end(), [&](const auto &one) { return value.is(one.first); });
    if (end != ends_.end() && is_ascii(name)) {
        const nb::object key = make(ir().spelled, Value(ir().spelled_text, name), Value(ir().spelled_spellings, known.escapes),
                                    Value(ir().spelled_quote, known.no_quote));
        return seq(nb::make_tuple(seq(nb::make_tuple(known.quote, key)), end->second));
    }
    nb::list parts;
    parts.append(quoted(name));
    parts.append(colon_);
    parts.append(value);
    extend(parts, ws_);
    return seq(nb::tuple(parts));
}

/// A member that is none of these, with any value.
nb::object Glance::others(const nb::list &all) const {
    const Names &known = names();
    for (nb::handle name : all)
        if (!is_ascii(name)) return known.other_member(all, other_end_);
    const nb::object unlisted = make(ir().unlisted, Value(ir().unlisted_words, nb::tuple(all)), Value(ir().unlisted_spellings, known.escapes),
                                     Value(ir().unlisted_tail, other_end_.attr("inside")), Value(ir().unlisted_end, other_end_.attr("quote")));
    return seq(nb::make_tuple(known.quote, unlisted));
}

/// The members as declared. Before the first that is required the comma follows, after it the comma leads.
nb::object Glance::in_order(const Members &members) const {
    nb::list parts;
    parts.append(names().open);
    extend(parts, ws_);
    bool anchored = false;
    for (size_t i = 0; i < members.names.size(); ++i) {
        const bool needed = contains(members.needed, members.names[i]);
        nb::list one;
        if (anchored) extend(one, comma_);
        one.append(quoted(members.names[i]));
        one.append(colon_);
        one.append(members.values[i]);
        extend(one, ws_);
        if (!anchored && !needed) extend(one, comma_);
        if (needed) parts.extend(one);
        else parts.append(optional(seq(nb::tuple(one))));
        anchored = anchored || needed;
    }
    parts.append(names().close);
    return seq(nb::tuple(parts));
}

}  // namespace dovetail
