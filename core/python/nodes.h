// The Python nodes of dovetail.grammar.ir, read from C++.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "base/common.h"

namespace dovetail {

namespace nb = nanobind;

/// A field of a class with slots, read by the descriptor of the slot: a grammar has thousands of them, and looking a
/// name up takes several times as long.
class Field {
  public:
    Field(const nb::object &type, const char *name) : descriptor_(type.attr(name)) {
        if (Py_TYPE(descriptor_.ptr()) != &PyMemberDescr_Type) throw InputError("the nodes of a grammar must be classes with slots");
        get_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_get));
        set_ = reinterpret_cast<descrsetfunc>(PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set));
    }
    /// The value belongs to the object, which must be of the field's class.
    nb::handle operator()(nb::handle object) const {
        PyObject *value = get_(descriptor_.ptr(), object.ptr(), nullptr);
        if (!value) {
            PyErr_Clear();
            throw InputError("a field of a grammar node is not set");
        }
        Py_DECREF(value);  // the object keeps it
        return value;
    }
    void set(nb::handle object, const nb::object &value) const {
        if (set_(descriptor_.ptr(), object.ptr(), value.ptr())) throw nb::python_error();
    }

  private:
    nb::object descriptor_;
    descrgetfunc get_;
    descrsetfunc set_;
};

/// The classes of dovetail.grammar.ir and their fields, looked up once.
struct Ir {
    nb::module_ module = nb::module_::import_("dovetail.grammar.ir");
    nb::object lit = module.attr("Lit"), chars = module.attr("Chars"), bytes = module.attr("Bytes");
    nb::object seq = module.attr("Seq"), alt = module.attr("Alt"), repeat = module.attr("Repeat");
    nb::object rule = module.attr("Rule"), call = module.attr("Call"), capture = module.attr("Capture");
    nb::object tokens = module.attr("Tokens"), text = module.attr("Text"), without = module.attr("Without");
    nb::object any_order = module.attr("AnyOrder"), new_key = module.attr("NewKey");
    nb::object unlisted = module.attr("Unlisted");
    Field lit_data{lit, "data"}, lit_special{lit, "special"}, chars_ranges{chars, "ranges"}, bytes_ranges{bytes, "ranges"};
    Field seq_parts{seq, "parts"}, alt_parts{alt, "parts"};
    Field repeat_body{repeat, "body"}, repeat_low{repeat, "low"}, repeat_high{repeat, "high"};
    Field rule_name{rule, "name"}, rule_body{rule, "body"}, rule_compiled{rule, "compiled"}, call_rule{call, "rule"},
        capture_name{capture, "name"}, capture_body{capture, "body"};
    Field tokens_tokens{tokens, "tokens"}, tokens_exclude{tokens, "exclude"};
    Field text_excludes{text, "excludes"}, text_stops{text, "stops"}, text_after{text, "after"};
    Field text_captures{text, "captures"}, text_max_chars{text, "max_chars"}, text_max_tokens{text, "max_tokens"};
    Field text_min_chars{text, "min_chars"};
    Field any_members{any_order, "members"}, any_extra{any_order, "extra"}, any_separator{any_order, "separator"};
    Field any_close{any_order, "close"}, any_started{any_order, "started"};
    Field unlisted_words{unlisted, "words"}, unlisted_chars{unlisted, "chars"}, unlisted_rest{unlisted, "rest"};
    Field unlisted_other{unlisted, "other"}, unlisted_end{unlisted, "end"};
    nb::object measured = module.attr("Measured");
    Field measured_states{measured, "states"}, measured_start{measured, "start"}, measured_low{measured, "low"};
    Field measured_high{measured, "high"}, measured_end{measured, "end"};
    Field new_key_grows{new_key, "grows"};
    Field without_body{without, "body"}, without_excludes{without, "excludes"};
};

inline const Ir &ir() {
    static const Ir *names = new Ir;  // never freed: the interpreter may be gone before static destructors run
    return *names;
}

inline bool is_a(nb::handle o, const nb::object &type) { return Py_TYPE(o.ptr()) == reinterpret_cast<PyTypeObject *>(type.ptr()); }

inline std::string_view bytes_of(nb::handle o) {
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(o.ptr(), &data, &size)) throw nb::python_error();
    return {data, static_cast<size_t>(size)};
}

inline std::string_view text_of(nb::handle o) {
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(o.ptr(), &size);
    if (!data) throw nb::python_error();
    return {data, static_cast<size_t>(size)};
}

inline uint64_t number_of(nb::handle o, uint64_t limit, const char *what) {
    const unsigned long long v = PyLong_AsUnsignedLongLong(o.ptr());
    const bool failed = v == static_cast<unsigned long long>(-1) && PyErr_Occurred();
    if (failed) PyErr_Clear();
    if (failed || v > limit) throw InputError(std::string(what) + " must be between 0 and " + std::to_string(limit));
    return v;
}

/// Something of C++ that an object of Python owns.
template <class Owned> nb::object owned_by_python(Owned *made, const char *name) {
    nb::object owner = nb::steal(PyCapsule_New(
        made, name, [](PyObject *capsule) { delete static_cast<Owned *>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))); }));
    if (!owner.is_valid()) {
        delete made;
        throw nb::python_error();
    }
    return owner;
}

/// Calls `visit` for the items of a tuple.
template <class Visit> void each(nb::handle tuple, Visit visit) {
    if (!PyTuple_Check(tuple.ptr())) throw InputError("a grammar node holds something else than a tuple");
    const Py_ssize_t n = PyTuple_Size(tuple.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) visit(nb::handle(PyTuple_GetItem(tuple.ptr(), i)));
}

inline size_t length(nb::handle tuple) {
    if (!PyTuple_Check(tuple.ptr())) throw InputError("a grammar node holds something else than a tuple");
    return static_cast<size_t>(PyTuple_Size(tuple.ptr()));
}

/// Sorted, disjoint ranges of numbers up to a limit.
inline Ranges range_list(nb::handle list, uint64_t limit) {
    Ranges ranges;
    uint64_t next = 0;
    each(list, [&](nb::handle pair) {
        if (length(pair) != 2) throw InputError("a range is a pair");
        const uint64_t low = number_of(PyTuple_GetItem(pair.ptr(), 0), limit, "the start of a range");
        const uint64_t high = number_of(PyTuple_GetItem(pair.ptr(), 1), limit, "the end of a range");
        if (low > high || low < next) throw InputError("ranges must be sorted and disjoint");
        next = high + 1;
        ranges.emplace_back(static_cast<uint32_t>(low), static_cast<uint32_t>(high));
    });
    return ranges;
}

}  // namespace dovetail
