// Many zeros of which few are written to: the system provides a page of them when it is first touched, and not before.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace maxmargin {

class LazyZeros {
  public:
    // The first n zeros; what was written to them has to be taken back.
    double* get(size_t n) {
        if (n > n_) {
            values_.reset(static_cast<double*>(std::calloc(n, sizeof(double))));
            n_ = values_ ? n : 0;
            if (!values_) throw std::bad_alloc();
        }
        return values_.get();
    }

  private:
    struct Free {
        void operator()(double* values) const { std::free(values); }
    };
    std::unique_ptr<double, Free> values_;
    size_t n_ = 0;
};

}  // namespace maxmargin
