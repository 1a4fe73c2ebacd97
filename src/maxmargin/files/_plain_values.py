"""Python values as JSON with their types, and arrays beside it: what a model file can hold.

JSON's own types stand for themselves. Everything else is an object with one key that names its type, such as
``{"tuple": [1, 2]}``; arrays of numbers are ``{"array": name}`` and lie in a dictionary of their own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels import Kernel

# Types of arrays that a file may hold: numbers and booleans of fixed size.
DTYPES = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)

# Lists of strings longer than this are stored as bytes rather than in the JSON, whose size safetensors limits.
_LONG_LIST = 1000


class Encoder:
    """Turns values into JSON values, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, name: str) -> Any:
        """Return the JSON form of a value.

        Parameters
        ----------
        value : object
            None, a boolean, number, string, bytes, list, tuple, set, dict, array or kernel, nested as you like.
        name : str
            What it is called in messages, and what its arrays are called in the file.

        Raises
        ------
        TypeError
            If a value is of another type.
        """
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._encode_array(value, name)
        if isinstance(value, np.generic) and value.dtype.name in DTYPES:
            return {"scalar": [value.dtype.name, self.encode(value.item(), name)]}
        if isinstance(value, np.str_):
            return {"str_": str(value)}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if type(value) is dict:
            return {"dict": [[self.encode(k, name), self.encode(v, f"{name}.{k}")] for k, v in value.items()]}
        if type(value) in (list, tuple, set, frozenset):
            if type(value) is list and len(value) > _LONG_LIST and all(type(v) is str for v in value):
                return {"strings": self._encode_strings(value, name)}
            items = [self.encode(v, f"{name}.{i}") for i, v in enumerate(value)]
            return items if type(value) is list else {type(value).__name__: items}
        if type(value) is Kernel:
            return {"kernel": self.encode(dataclasses.asdict(value), name)}
        raise TypeError(f"{name} is of type {type(value).__name__}, which a model file cannot hold")

    def _encode_array(self, array: NDArray[Any], name: str) -> Any:
        if array.dtype.name in DTYPES:
            key = self._free_name(name)
            self.arrays[key] = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
            return {"array": key}
        if array.ndim == 1 and array.dtype.kind in "UO":
            return {"text" if array.dtype.kind == "U" else "objects": self.encode(array.tolist(), name)}
        raise TypeError(
            f"{name} is an array of type {array.dtype} and shape {array.shape}, which a model file cannot hold"
        )

    def _encode_strings(self, strings: list[str], name: str) -> str:
        # Lone surrogates occur in names read from files with encoding errors.
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        key = self._free_name(name)
        self.arrays[key] = np.frombuffer(b"".join(encoded), np.uint8)
        self.arrays[f"{key}.ends"] = np.cumsum([len(part) for part in encoded], dtype=np.int64)
        return key

    def _free_name(self, name: str) -> str:
        while name in self.arrays:
            name += "'"
        return name


class Decoder:
    """The inverse of :class:`Encoder`; anything it did not write is a ValueError."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": self._float,
            "array": self._array,
            "scalar": self._scalar,
            "str_": lambda text: np.str_(text),
            "bytes": bytes.fromhex,
            "dict": lambda pairs: {self.decode(k): self.decode(v) for k, v in pairs},
            "strings": self._strings,
            "tuple": lambda items: tuple(self.decode(item) for item in items),
            "set": lambda items: {self.decode(item) for item in items},
            "frozenset": lambda items: frozenset(self.decode(item) for item in items),
            "text": lambda items: np.array(self.decode(items), dtype=np.str_),
            "objects": self._objects,
            "kernel": lambda fields: Kernel(**self.decode(fields)),
        }

    def decode(self, value: Any) -> Any:
        """Return the value of a JSON form."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ValueError(f"found an object with the keys {sorted(value)[:5]} where a typed value was expected")
        kind, content = next(iter(value.items()))
        if kind not in self._readers:
            raise ValueError(f"found a value of the unknown type '{kind}'")
        return self._readers[kind](content)

    def _float(self, text: Any) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise ValueError(f"found the float {text!r}")
        return float(text)

    def _array(self, key: Any) -> NDArray[Any]:
        if not isinstance(key, str) or key not in self.arrays:
            raise ValueError(f"the array {key!r} is missing")
        return self.arrays[key]

    def _scalar(self, content: Any) -> Any:
        dtype, value = content
        if dtype not in DTYPES:
            raise ValueError(f"found a number of the unknown type {dtype!r}")
        return np.dtype(dtype).type(self.decode(value))

    def _strings(self, key: Any) -> list[str]:
        text, ends = self._array(key), self._array(f"{key}.ends")
        starts = np.concatenate([[0], ends[:-1]])
        if text.dtype != np.uint8 or ends.dtype != np.int64 or text.ndim != 1 or ends.ndim != 1:
            raise ValueError(f"the strings '{key}' are stored with the wrong types")
        if np.any(ends < starts) or ends[-1] != len(text):
            raise ValueError(f"the strings '{key}' do not fill their bytes")
        joined = text.tobytes()
        return [
            joined[start:end].decode("utf-8", "surrogatepass")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def _objects(self, items: Any) -> NDArray[Any]:
        values = self.decode(items)
        array = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):
            array[i] = value
        return array
