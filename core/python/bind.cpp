// The Python face of the core: converts, checks and forwards.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <bit>

#include "encode.h"
#include "matcher/matcher.h"
#include "grammar/store.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace dovetail;

namespace {

using TokenList = std::vector<uint32_t>;
using DraftList = std::vector<int64_t>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using AnyArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// A tensor as DLPack describes it, and the table of functions that newer libraries publish on their type of tensor: one
/// call gives the description, where the protocol of Python takes longer than the mask.
struct DlTensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct DlExchange {
    uint32_t major, minor;
    DlExchange *before;
    void *allocate, *managed_from_object, *managed_to_object;
    int (*describe)(void *object, DlTensor *out);
    void *current_stream;

    /// The table of an object's type, looked up once for each of the last type asked for; null where it has none.
    static const DlExchange *of(nb::handle object) {
        static PyTypeObject *last = nullptr;
        static const DlExchange *known = nullptr;
        PyTypeObject *type = Py_TYPE(object.ptr());
        if (type != last) {
            known = nullptr;
            if (PyObject_HasAttrString(reinterpret_cast<PyObject *>(type), kAttribute)) {
                const nb::object capsule = nb::handle(reinterpret_cast<PyObject *>(type)).attr(kAttribute);
                known = static_cast<const DlExchange *>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
                if (!known) PyErr_Clear();
                if (known && (known->major != 1 || !known->describe)) known = nullptr;
            }
            last = type;
        }
        return known;
    }

    static constexpr const char *kAttribute = "__dlpack_c_exchange_api__";
};

/// A caller's mask, one row for each matcher, held for the length of a call.
class MaskRows {
  public:
    MaskRows(nb::handle mask, size_t words) : words_(words) {
        // numpy arrays and tensors with a table of functions take short ways; anything else that speaks DLPack the long one.
        if (PyObject_CheckBuffer(mask.ptr())) {
            if (PyObject_GetBuffer(mask.ptr(), &view_, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS)) throw nb::python_error();
            held_ = true;
            take(view_.buf, view_.itemsize, view_.ndim, view_.ndim > 0 ? view_.shape[view_.ndim - 1] : 0,
                 view_.ndim == 2 ? view_.shape[0] : 1);
        } else if (const DlExchange *exchange = DlExchange::of(mask)) {
            DlTensor tensor{};
            if (exchange->describe(mask.ptr(), &tensor)) throw nb::python_error();
            if (tensor.device_type != kCpu || !is_contiguous(tensor)) refuse();
            const auto size = [&](int32_t at) { return static_cast<Py_ssize_t>(tensor.shape[at]); };
            take(static_cast<char *>(tensor.data) + tensor.byte_offset, tensor.bits * tensor.lanes / 8, tensor.ndim,
                 tensor.ndim > 0 ? size(tensor.ndim - 1) : 0, tensor.ndim == 2 ? size(0) : 1);
        } else {
            if (!nb::try_cast(mask, array_)) refuse();
            const auto ndim = static_cast<Py_ssize_t>(array_.ndim());
            const auto size = [&](Py_ssize_t at) { return static_cast<Py_ssize_t>(array_.shape(static_cast<size_t>(at))); };
            take(array_.data(), static_cast<Py_ssize_t>(array_.itemsize()), ndim, ndim > 0 ? size(ndim - 1) : 0, ndim == 2 ? size(0) : 1);
        }
    }
    ~MaskRows() {
        if (held_) PyBuffer_Release(&view_);
    }
    MaskRows(const MaskRows &) = delete;
    MaskRows &operator=(const MaskRows &) = delete;

    size_t rows() const { return rows_; }
    uint32_t *row(Py_ssize_t i) const {
        if (i < 0 || static_cast<size_t>(i) >= rows_) throw nb::index_error("the mask has no such row");
        return data_ + static_cast<size_t>(i) * words_;
    }

  private:
    static constexpr int32_t kCpu = 1;

    static bool is_contiguous(const DlTensor &tensor) {
        int64_t step = 1;
        for (int32_t i = tensor.ndim; tensor.strides && i-- > 0; step *= tensor.shape[i])
            if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
        return true;
    }
    [[noreturn]] static void refuse() { throw nb::type_error("a mask is a contiguous array in the memory of the CPU"); }
    void take(void *data, Py_ssize_t itemsize, Py_ssize_t ndim, Py_ssize_t last, Py_ssize_t rows) {
        data_ = static_cast<uint32_t *>(data);
        rows_ = static_cast<size_t>(rows);
        if (itemsize == 4 && (ndim == 1 || ndim == 2) && static_cast<size_t>(last) == words_) return;
        const std::string message = "a mask row must hold ceil(vocabulary size / 32) = " + std::to_string(words_) +
                                    " integers of 32 bits, in an array of one or two dimensions";
        if (held_) PyBuffer_Release(&view_);
        throw nb::value_error(message.c_str());
    }

    size_t words_;
    Py_buffer view_{};
    bool held_ = false;
    AnyArray array_;
    uint32_t *data_ = nullptr;
    size_t rows_ = 0;
};

std::string_view view_of(nb::handle data) {
    if (PyUnicode_Check(data.ptr())) {
        Py_ssize_t size;
        const char *utf8 = PyUnicode_AsUTF8AndSize(data.ptr(), &size);
        if (!utf8) throw nb::python_error();
        return {utf8, static_cast<size_t>(size)};
    }
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data.ptr(), &bytes, &size)) throw nb::python_error();
    return {bytes, static_cast<size_t>(size)};
}

std::shared_ptr<Store> make_store(const nb::sequence &tokens, const std::vector<std::pair<std::string, uint32_t>> &special,
                                  const TokenList &stops, size_t cache_bytes, uint32_t shortcuts) {
    std::vector<std::string> list;
    list.reserve(nb::len(tokens));
    for (nb::handle t : tokens) list.emplace_back(view_of(t));
    const nb::gil_scoped_release unlocked;
    return std::make_shared<Store>(Vocab(std::move(list), special, stops), cache_bytes, Shortcuts{shortcuts});
}

void fill_rows(const std::vector<Matcher *> &matchers, nb::handle mask, const std::optional<std::vector<Py_ssize_t>> &chosen) {
    if (chosen && chosen->size() != matchers.size()) throw nb::value_error("there are not as many rows as matchers");
    if (matchers.empty()) return;
    const MaskRows rows(mask, matchers[0]->mask_words());
    if (!chosen && rows.rows() < matchers.size()) throw nb::value_error("the mask has fewer rows than there are matchers");
    std::vector<uint32_t *> pointers;
    for (size_t i = 0; i < matchers.size(); ++i) {
        if (matchers[i]->mask_words() != matchers[0]->mask_words())
            throw nb::value_error("the matchers have vocabularies of different sizes");
        pointers.push_back(rows.row(chosen ? (*chosen)[i] : static_cast<Py_ssize_t>(i)));
    }
    const nb::gil_scoped_release unlocked;
    fill_masks(matchers, pointers);
}

/// A hash of JSON-like data that tells types apart (1, 1.0 and True differ). Strings bring the hash that Python keeps
/// for them, which is keyed per process, so that nobody can aim for a collision.
struct Fingerprint {
    uint64_t low = 1, high = 2, values = 0;

    void add(uint64_t v) {
        low = mix(low, v);
        high = mix(high ^ 0x5bd1e995u, v + high);
    }
    void walk(nb::handle o, size_t depth) {
        if (depth > kMaxDepth) throw LimitError("the input is nested deeper than 2000 levels");
        PyObject *p = o.ptr();
        ++values;
        add(reinterpret_cast<uintptr_t>(Py_TYPE(p)));
        if (PyDict_CheckExact(p)) {
            add(static_cast<uint64_t>(PyDict_Size(p)));
            PyObject *key, *value;
            Py_ssize_t at = 0;
            while (PyDict_Next(p, &at, &key, &value)) {
                walk(key, depth + 1);
                walk(value, depth + 1);
            }
        } else if (PyList_CheckExact(p) || PyTuple_CheckExact(p)) {
            const bool is_list = PyList_CheckExact(p);
            const Py_ssize_t n = is_list ? PyList_Size(p) : PyTuple_Size(p);
            add(static_cast<uint64_t>(n));
            for (Py_ssize_t i = 0; i < n; ++i) walk(is_list ? PyList_GetItem(p, i) : PyTuple_GetItem(p, i), depth + 1);
        } else {
            if (PyUnicode_CheckExact(p)) add(static_cast<uint64_t>(PyUnicode_GetLength(p)));
            const Py_hash_t hash = PyObject_Hash(p);
            if (hash == -1) throw nb::python_error();
            add(static_cast<uint64_t>(hash));
            // Python gives -1 and -2 the same hash, and large integers are reduced.
            if (PyLong_CheckExact(p)) {
                const long long v = PyLong_AsLongLong(p);
                if (v == -1 && PyErr_Occurred()) {
                    PyErr_Clear();
                    const nb::str digits = nb::str(o);
                    add(static_cast<uint64_t>(PyObject_Hash(digits.ptr())));
                } else {
                    add(static_cast<uint64_t>(v));
                }
            } else if (PyFloat_CheckExact(p)) {
                add(std::bit_cast<uint64_t>(PyFloat_AsDouble(p)));
            }
        }
    }
};

/// Does a dictionary inside have one of the names for a key, with no dictionary behind it?
bool has_names(nb::handle data, nb::tuple names) {
    std::vector<PyObject *> pending{data.ptr()};
    while (!pending.empty()) {
        PyObject *p = pending.back();
        pending.pop_back();
        if (PyDict_Check(p)) {
            for (nb::handle name : names) {
                PyObject *value = PyDict_GetItemWithError(p, name.ptr());
                if (!value && PyErr_Occurred()) throw nb::python_error();
                if (value && !PyDict_Check(value)) return true;
            }
            PyObject *key, *value;
            Py_ssize_t at = 0;
            while (PyDict_Next(p, &at, &key, &value))
                if (PyDict_Check(value) || PyList_Check(value)) pending.push_back(value);
        } else if (PyList_Check(p)) {
            for (Py_ssize_t i = 0; i < PyList_Size(p); ++i) pending.push_back(PyList_GetItem(p, i));
        }
    }
    return false;
}

void raise_as(const char *name, const char *message) {
    const nb::object type = nb::module_::import_("dovetail.errors").attr(name);
    PyErr_SetString(type.ptr(), message);
}

}  // namespace

NB_MODULE(_core, m) {
    // Vocabularies often live in module-level caches, and those outlast the point at which leaks are looked for.
    nb::set_leak_warnings(false);
    m.doc() = "The automaton of dovetail: grammars in, token masks and captures out.";

    nb::register_exception_translator([](const std::exception_ptr &p, void *) {
        try {
            std::rethrow_exception(p);
        } catch (const LimitError &e) { raise_as("LimitError", e.what()); } catch (const MisuseError &e) {
            raise_as("MatcherError", e.what());
        } catch (const InputError &e) { raise_as("GrammarError", e.what()); }
    });

    nb::class_<Store>(m, "Store", nb::dynamic_attr(), "The tokens of one tokenizer and everything that grammars over them share.")
        .def(nb::new_(&make_store), "tokens"_a, "special"_a, "stops"_a, "cache_bytes"_a, "shortcuts"_a = Shortcuts().bits)
        .def(
            "compile", [](Store &self, nb::handle rule) { return compile(rule, self); }, "rule"_a, "Compile a dovetail.grammar.ir.Rule.")
        .def(
            "load", [](Store &self, const nb::bytes &saved) { return self.compile(load_program({saved.c_str(), saved.size()})); },
            "saved"_a, "Compile what Grammar.save gave.")
        .def(
            "token_bytes",
            [](const Store &self, uint32_t token) {
                if (token >= self.vocab().size()) throw nb::index_error("the vocabulary has no such token");
                const std::string_view bytes = self.vocab().bytes(token);
                return nb::bytes(bytes.data(), bytes.size());
            },
            "token"_a, "What a token adds to the output.")
        .def(
            "is_prefix", [](const Store &self, const nb::bytes &data) { return self.vocab().is_prefix({data.c_str(), data.size()}); },
            "data"_a, "Whether some token that is text goes on behind these bytes.")
        .def_prop_ro("size", [](const Store &self) { return self.vocab().size(); })
        .def_prop_ro("longest_token", [](const Store &self) { return self.vocab().longest(); })
        .def_prop_ro("vocabulary_bytes", [](const Store &self) { return self.vocab().memory(); })
        .def_prop_ro("automaton_bytes", &Store::automaton_bytes)
        .def_prop_ro("mask_bytes", &Store::mask_bytes)
        .def(
            "find",
            [](const Store &self, const std::string &text) {
                const uint32_t id = self.vocab().find(text);
                return id == kNone ? nb::none() : nb::object(nb::int_(id));
            },
            "text"_a, "The id of the token with this text, or None.");

    nb::class_<Grammar>(m, "Grammar", "A compiled grammar; immutable and shared by threads.")
        .def(
            "save",
            [](const Grammar &self) {
                const std::string saved = save_program(self.store->program_of(self));
                return nb::bytes(saved.data(), saved.size());
            },
            "The grammar as bytes that Store.load takes.")
        .def(
            "matcher",
            [](std::shared_ptr<Grammar> self, const TokenList &stops, bool only) {
                return std::make_unique<Matcher>(std::move(self), stops, only);
            },
            "stops"_a = TokenList{}, "only"_a = false,
            "A matcher at the start of an output, with stop tokens beside the vocabulary's or in their place.");

    nb::class_<Matcher>(m, "Matcher", "The state of one generation.")
        .def(
            "fill_mask",
            [](Matcher &self, nb::handle mask, Py_ssize_t row) {
                const MaskRows rows(mask, self.mask_words());
                uint32_t *const out = rows.row(row);
                const nb::gil_scoped_release unlocked;
                self.fill_mask(out);
            },
            "mask"_a, "row"_a = 0, "Overwrite a row of `mask`: bit t is 1 when token t may come next.")
        .def("accept", &Matcher::accept, "token"_a, Unlocked(),
             "Take a token; False, and no change, where it may not come next. A MatcherError where there is no such token.")
        .def(
            "accept_bytes", [](Matcher &self, nb::handle data) { return self.accept_bytes(view_of(data)); }, "data"_a,
            "Take all of these bytes or none of them; a string counts as its UTF-8.")
        .def(
            "accept_tokens", [](Matcher &self, const DraftList &tokens) { return self.accept_tokens(tokens.data(), tokens.size()); },
            "tokens"_a, Unlocked(),
            "Take tokens in a row; how many, as none is taken behind one that may not come or does not exist, or behind the end.")
        .def(
            "validate", [](Matcher &self, const DraftList &tokens) { return self.validate(tokens.data(), tokens.size()); }, "tokens"_a,
            Unlocked(), "How many of these tokens could be accepted in a row; an id that does not exist ends it. Nothing changes.")
        .def("rollback", &Matcher::rollback, "steps"_a, "Take back that many accepted tokens or pieces of bytes.")
        .def("reset", &Matcher::reset, "Go back to the start.")
        .def(
            "fork", [](const Matcher &self) { return std::make_unique<Matcher>(self); }, "An independent copy.")
        .def(
            "forced",
            [](Matcher &self) {
                const std::string bytes = self.forced();
                return nb::bytes(bytes.data(), bytes.size());
            },
            "The bytes that must come next, whatever the model wants.")
        .def(
            "forced_tokens", [](nb::handle self) { return nb::module_::import_("dovetail.engine.forced").attr("forced_tokens")(self); },
            "The tokens that must come next, cut as the tokenizer would cut them whatever follows.")
        .def(
            "events",
            [](const Matcher &self) {
                nb::list marks;
                for (const CaptureMark &m : self.captures()) marks.append(nb::make_tuple(m.open, m.name, m.at));
                return nb::module_::import_("dovetail.engine.events").attr("tile")(marks, self.position());
            },
            "Captures as events whose spans tile the output so far.")
        .def_prop_ro("is_complete", &Matcher::is_complete, "The output so far may end here.")
        .def_prop_ro("is_finished", &Matcher::is_finished, "A stop token has ended the output.")
        .def_prop_ro("steps", &Matcher::steps, "How many steps can be rolled back.")
        .def_prop_ro("position", &Matcher::position, "Bytes of output so far.")
        .def_prop_ro("mask_words", &Matcher::mask_words, "32-bit words in a mask row.")
        .def_prop_ro("store", [](const Matcher &self) { return self.grammar()->store; }, "What its grammar is compiled for.");

    m.def(
        "fingerprint",
        [](nb::handle data) {
            Fingerprint f;
            f.walk(data, 0);
            return std::pair(std::pair(f.low, f.high), f.values);
        },
        "data"_a, "A hash of JSON-like data, equal for equal data within one process, and how many values it holds.");
    m.def("has_names", &has_names, "data"_a, "names"_a,
          "Whether a dictionary inside JSON-like data has one of the names for a key, with no dictionary behind it.");
    m.def(
        "shortcuts", [] { return std::vector<std::string>(kShortcutNames.begin(), kShortcutNames.end()); },
        "The shortcuts of the mask walk by name, in the order of the bits that a Store takes.");
    m.def("fill_masks", &fill_rows, "matchers"_a, "mask"_a, "rows"_a = nb::none(),
          "Fill row i, or rows[i], for matcher i, with ones where it has finished.");
}
