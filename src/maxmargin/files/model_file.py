"""Model files: one safetensors file with the arrays, and a JSON header among its metadata.

    metadata["maxmargin"]   first line: SHA-256 of the rest and of all arrays, in the order of their names;
                            the rest: JSON with format version, class, parameters, fitted state, certificate, versions

One entry, because safetensors writes several in random order, and equal models should be equal files.
Nothing is executed on reading: the class is looked up in the table that the caller gives, and values are decoded by
`_plain_values`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from maxmargin._result import Certificate
from maxmargin.files._plain_values import DTYPES, Decoder, Encoder

FORMAT_VERSION = 1

_LIBRARIES = ("maxmargin", "numpy", "scipy", "scikit-learn", "safetensors")


class Storable(Protocol):
    """What a file asks of an estimator."""

    certificate_: Certificate
    n_iter_: int

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters."""

    def _fitted_state(self) -> dict[str, Any]: ...

    @classmethod
    def _from_file(
        cls,
        parameters: dict[str, Any],
        certificate: Certificate,
        n_iter: int,
        state: dict[str, Any],
        planes: dict[str, Any] | None,
    ) -> Self: ...


Stored = TypeVar("Stored", bound=Storable)


def save(estimator: Storable, path: str | os.PathLike[str], planes: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to one file.

    The file is written beside and renamed, so that ``path`` never holds half a model. The history is not stored. Of a
    :class:`StructuralSVM` the weights and the plain attributes of its model are stored, not the model's class: :func:`load`
    must be given that.

    Parameters
    ----------
    estimator : Storable
        A fitted estimator.
    path : str or path
        Where to write; an existing file is replaced.
    planes : dict, optional
        Planes for a warm start, as plain values and arrays.

    Raises
    ------
    ValueError
        If a parameter, a label or a feature name is of a type that a file cannot hold.
    FileNotFoundError
        If the folder of ``path`` is not there.
    """
    encoder = Encoder()
    state = estimator._fitted_state()
    parameters = estimator.get_params(deep=False)
    # A user's model is not ours to store: its class is given to load, and what initialize() set comes from the file.
    parameters.pop("model", None)
    model_state = _storable(state.pop("model")) if "model" in state else None
    try:
        header = {
            "version": FORMAT_VERSION,
            "class": type(estimator).__name__,
            "parameters": {key: encoder.encode(value, f"parameter {key}") for key, value in parameters.items()},
            "fitted": {key: encoder.encode(value, key) for key, value in state.items()},
            "certificate": {
                key: encoder.encode(value, key) for key, value in dataclasses.asdict(estimator.certificate_).items()
            },
            "n_iter": estimator.n_iter_,
            "libraries": {
                "python": platform.python_version(),
                **{library: _version(library) for library in _LIBRARIES},
            },
        }
        if planes is not None:
            header["planes"] = {key: encoder.encode(value, f"planes {key}") for key, value in planes.items()}
        if model_state is not None:
            stored, left_out = model_state
            header["model"] = {key: encoder.encode(value, f"model {key}") for key, value in stored.items()}
            header["model_left_out"] = left_out
    except TypeError as error:
        raise ValueError(f"{error}: change it, or pickle the estimator.") from None
    text = json.dumps(header, allow_nan=False)
    _write(Path(path), text, encoder.arrays)


def load(path: str | os.PathLike[str], classes: Mapping[str, type[Stored]], model: Any = None) -> Stored:
    """Read an estimator that :func:`save` wrote.

    Parameters
    ----------
    path : str or path
        A model file.
    classes : mapping of str to class
        The estimators it may hold, by name. No other class is looked for anywhere.
    model : Model, optional
        What the file of an estimator with a ``model`` parameter cannot hold.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged, or was written by a later version.
    """
    name = os.fspath(path)
    text, arrays = _read(path)
    try:
        header = json.loads(text)
        _check_version(header, name)
        kind = classes.get(header["class"])
        if kind is None:
            raise ValueError(f"it holds a {header['class']!r}, which this version does not know")
        decoder = Decoder(arrays)
        parameters = {key: decoder.decode(value) for key, value in header["parameters"].items()}
        state = {key: decoder.decode(value) for key, value in header["fitted"].items()}
        if "model" in header:
            state["model"] = {key: decoder.decode(value) for key, value in header["model"].items()}
            parameters["model"] = _check_given(model, state["model_class"], header["model_left_out"], name)
        elif model is not None:
            raise _Mismatch(f"{name} holds a {header['class']}, which takes no model: leave model out.")
        certificate = Certificate(**{key: decoder.decode(value) for key, value in header["certificate"].items()})
        planes = {key: decoder.decode(value) for key, value in header["planes"].items()} if "planes" in header else None
        return kind._from_file(parameters, certificate, int(header["n_iter"]), state, planes)
    except _Mismatch as error:
        raise ValueError(str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError(f"{name} is not a valid model file: {_described(error)}.") from error


class _Mismatch(Exception):
    """The file is in order, but not for this call."""


def _version(library: str) -> str:
    """Return the version of a library; one that was copied and not installed has none that is known."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "unknown"


def _check_version(header: Any, name: str) -> None:
    found = header["version"]
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"its format version is {found!r}")
    if found > FORMAT_VERSION:
        writer = header.get("libraries", {}).get("maxmargin", "a later version")
        raise _Mismatch(
            f"{name} has the format version {found} (written by maxmargin {writer}); this version reads up to "
            f"{FORMAT_VERSION}: upgrade maxmargin."
        )


def _storable(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes of a model that a file can hold, and the names of the others."""
    stored, left_out = {}, []
    for key, value in attributes.items():
        try:
            Encoder().encode(value, key)
        except (TypeError, RecursionError):
            left_out.append(key)
        else:
            stored[key] = value
    return stored, left_out


def _check_given(model: Any, class_name: str, left_out: list[str], name: str) -> Any:
    if model is None:
        raise _Mismatch(
            f"{name} holds a StructuralSVM with a model of the class {class_name}, which a file cannot hold: give an "
            f"instance, load(path, model={class_name}(…))."
        )
    if type(model).__qualname__ != class_name:
        raise _Mismatch(
            f"{name} was trained with a model of the class {class_name}, found a {type(model).__qualname__}."
        )
    missing = [key for key in left_out if key not in vars(model)]
    if missing:
        raise _Mismatch(
            f"{name} could not hold the attribute '{missing[0]}' of the model: set it on the model given to load."
        )
    return model


def _digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for key in sorted(arrays):
        array = arrays[key]
        digest.update(f"\0{key}\0{array.dtype.name}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _write(path: Path, text: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write beside and rename: what ``path`` holds is whole at every moment."""
    # Through a link the file it points to is replaced, not the link.
    target = Path(os.path.realpath(path))
    folder = target.parent if path.is_symlink() else path.parent
    if not folder.exists():
        raise FileNotFoundError(f"{path} could not be written: there is no folder {folder}.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            save_file(arrays, beside, {"maxmargin": f"{_digest(text, arrays)}\n{text}"})
        except SafetensorError as error:
            raise OSError(f"{path} could not be written: {error}") from error
        with open(beside, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: str | os.PathLike[str]) -> tuple[str, dict[str, NDArray[Any]]]:
    """Return the header's text and the arrays of an undamaged file."""
    # Opened first, because safetensors reports a missing file or a folder in ways of its own.
    with open(path, "rb"):
        pass
    name = os.fspath(path)
    try:
        with safe_open(name, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "maxmargin" not in metadata:
                raise ValueError(f"{name} is a safetensors file, but not one that maxmargin wrote.")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{name} is not a model file, or is damaged: {error}") from None
    odd = sorted(key for key, array in arrays.items() if array.dtype.name not in DTYPES)
    if odd:
        raise ValueError(f"{name} is not a valid model file: the array '{odd[0]}' is of type {arrays[odd[0]].dtype}.")
    checksum, _, text = metadata["maxmargin"].partition("\n")
    if checksum != _digest(text, arrays):
        raise ValueError(f"{name} is damaged: its checksum does not fit its content.")
    return text, arrays


def _described(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error).rstrip(".")
