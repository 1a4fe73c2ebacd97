"""What the cases of bad input are made of: data, models, short calls, and the rows they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.models import Multiclass

_rng = np.random.default_rng(0)
X = _rng.normal(size=(20, 3))
Y2 = (X[:, 0] > 0).astype(int)  # two classes
SIGNS = 2 * Y2 - 1
Y3 = np.digitize(X[:, 0], [-0.5, 0.5])  # three classes
XS = [X[:5], X[5:8], X[8:]]  # three sequences
YS = [Y3[:5].tolist(), Y3[5:8].tolist(), Y3[8:].tolist()]
WORDS = [[["w=the"], ["w=dog", "noun-like"]], [["w=she"], ["w=runs"]]]
TAGS = [["DET", "NOUN"], ["PRON", "VERB"]]


class Levels(mm.Model):
    """Three levels with a block of weights each: a model as users write them."""

    def initialize(self, X, Y):
        self.n_features = 9

    def outputs(self, x):
        return range(3)

    def joint_feature(self, x, y):
        psi = np.zeros((3, 3))
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true, y):
        return abs(y_true - y)


def levels(**methods):
    """Return the model with other methods or attributes."""
    return type("Levels", (Levels,), methods)()


class WithoutOutputs(mm.Model):
    """A model that can predict, and lacks the search that training needs."""

    n_features = 1

    def joint_feature(self, x, y):
        return [1.0]

    def loss(self, y_true, y):
        return 0.0

    def argmax(self, x, w):
        return 0


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------------- small helpers


def put(value, x=X):
    """Return X with one entry replaced."""
    x = x.copy()
    x[3, 1] = value
    return x


def replaced(items, i, item):
    return [*items[:i], item, *items[i + 1 :]]


def binary(x=X, y=Y2, sample_weight=None, **parameters):
    return mm.BinarySVM(**parameters).fit(x, y, sample_weight=sample_weight)


def multiclass(x=X, y=Y3, sample_weight=None, **parameters):
    return mm.MulticlassSVM(**parameters).fit(x, y, sample_weight=sample_weight)


def chain(x=XS, y=YS, sample_weight=None, token_weight=None, **parameters):
    return mm.ChainSVM(**parameters).fit(x, y, sample_weight=sample_weight, token_weight=token_weight)


def structural(model, x=X, y=Y3, sample_weight=None, **parameters):
    return mm.StructuralSVM(model, **parameters).fit(x, y, sample_weight=sample_weight)


def train(model, x, y, **options):
    return mm.train(model, x, y, **options)


def train3(**options):
    return mm.train(Multiclass(3), X, Y3, **options)


def certificate_of(fitted):
    return fitted.certificate if isinstance(fitted, mm.Solution) else fitted.certificate_


def is_solved(fitted, primal=None, tol=1e-3):
    """Whether the certificate proves an optimum, and the one that is known."""
    c = certificate_of(fitted)
    is_sound = c.dual <= c.primal * (1 + 1e-9) and c.primal - c.dual <= tol * c.primal
    return c.converged and is_sound and (primal is None or abs(c.primal - primal) <= 2 * tol * abs(primal) + 1e-12)


def is_close(a, b, atol=1e-5):
    return np.allclose(a, b, atol=atol)


def file_with(content):
    """Return the path of a new file; the caller's folder is temporary."""
    path = Path("model.mm")
    path.write_bytes(content)
    return path


def saved():
    binary().save("saved.mm")
    return Path("saved.mm").read_bytes()


# ------------------------------------------------------------------------------------------------------ the cases


@dataclass(frozen=True)
class Case:
    """One row: ``text`` is a part of the error's message, or None where ``call`` must return True."""

    id: str
    given: str
    call: Callable[[], Any]
    error: type[BaseException] | None = None
    text: str | None = None
    result: str = ""
    warns: type[Warning] | None = None
    core: bool = False


SECTIONS: dict[str, list[Case]] = {}


def section(title: str) -> None:
    SECTIONS[title] = []


def refused(id: str, given: str, error: type[BaseException], text: str, call: Callable[[], Any], core: bool = False):
    """The call must raise this error with this text in its message."""
    SECTIONS[list(SECTIONS)[-1]].append(Case(id, given, call, error, text, core=core))


def works(id: str, given: str, result: str, call: Callable[[], Any], warns: type[Warning] | None = None):
    """The call must return True: it checks the result."""
    SECTIONS[list(SECTIONS)[-1]].append(Case(id, given, call, result=result, warns=warns, core=True))


V, T = ValueError, TypeError
