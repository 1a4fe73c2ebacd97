#include "bindings/interrupts.hpp"

#include <nanobind/stl/optional.h>

#include <chrono>
#include <cmath>

#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"

namespace nb = nanobind;

namespace {

using Clock = std::chrono::steady_clock;

thread_local std::optional<Clock::time_point> deadline_of_thread;

PyObject* out_of_time = nullptr;  // the exception; it lives as long as the module

// A time after which long work of this thread ends, from __enter__ to __exit__; that of an outer one is back afterwards.
class Deadline {
  public:
    explicit Deadline(std::optional<double> seconds) : seconds_(seconds) {}
    void enter() {
        require(!is_entered_, "this Deadline has been entered already: make another one.");
        is_entered_ = true;
        before_ = deadline_of_thread;
        deadline_of_thread.reset();
        // Later than any clock goes is never.
        constexpr double longest = 1e9;
        if (seconds_ && *seconds_ < longest)
            deadline_of_thread = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::max(*seconds_, 0.0)));
    }
    void exit() { deadline_of_thread = before_; }

  private:
    std::optional<double> seconds_;
    bool is_entered_ = false;
    std::optional<Clock::time_point> before_;
};

}  // namespace

bool is_to_end() {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) return true;
    if (!deadline_of_thread || Clock::now() < *deadline_of_thread) return false;
    PyErr_SetString(out_of_time, "the time is up");
    return true;
}

void bind_interrupts(nb::module_& m) {
    out_of_time = PyErr_NewExceptionWithDoc("maxmargin._core.OutOfTime", "Long work was broken off at a Deadline.", PyExc_BaseException, nullptr);
    m.attr("OutOfTime") = nb::handle(out_of_time);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const maxmargin::Interrupted&) {
            if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
        }
    });
    m.def(
        "poll",
        [] {
            if (is_to_end()) throw nb::python_error();
        },
        "Raise what is due between two steps of long work in Python: KeyboardInterrupt, or OutOfTime.");
    nb::class_<Deadline>(m, "Deadline")
        .def(
            "__init__",
            [](Deadline* self, std::optional<double> seconds) {
                require(!seconds || !std::isnan(*seconds), "seconds is NaN: give a number of seconds from now, or None for no end.");
                new (self) Deadline(seconds);
            },
            nb::arg("seconds").none())
        .def("__enter__", [](Deadline& self) { self.enter(); })
        .def(
            "__exit__", [](Deadline& self, nb::handle, nb::handle, nb::handle) { self.exit(); }, nb::arg().none(), nb::arg().none(), nb::arg().none(),
            nb::sig("def __exit__(self, kind: object, error: object, traceback: object, /) -> None"));
}
