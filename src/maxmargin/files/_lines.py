"""Numbered lines of a text file, plain or gzip, with errors that name the line."""

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

GZIP_MAGIC = b"\x1f\x8b"


def open_binary(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, unpacking gzip; the first two bytes decide, not the name."""
    with open(path, "rb") as probe:
        is_gzip = probe.read(2) == GZIP_MAGIC
    # gzip.open in binary mode returns a GzipFile, which has the whole reading side of BinaryIO.
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip else open(path, "rb")


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` from 1 on, line ends and a leading byte order mark removed.

    Only ``\\n`` and ``\\r\\n`` end a line: Unicode has further line separators, tokens may hold them.

    Raises
    ------
    ValueError
        If a line is not UTF-8, or the gzip stream is damaged or cut short.
    """
    name = Path(path)
    number = 0
    with open_binary(path) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    found = raw[error.start : error.start + 1].hex()
                    raise ValueError(
                        f"{name}:{number}: found byte 0x{found} at position {error.start}, expected UTF-8"
                    ) from None
                yield number, line.rstrip("\r\n")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name}:{number + 1}: found a damaged or incomplete gzip file ({error})") from error
