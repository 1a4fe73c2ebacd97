"""What every benchmark needs: CPU time, wall time and peak memory of a call, and a table of results.

with Stopwatch() as watch: ...                CPU seconds of all threads, and wall seconds
in_fresh_process(function, *arguments)        the same for one call in a new interpreter, and its peak memory
write_table("chain", rows, note="...")        results/chain.md and results/chain.csv
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"


class Stopwatch:
    """Times its block: ``cpu`` and ``wall`` in seconds, CPU time summed over all threads of the process."""

    cpu = 0.0
    wall = 0.0

    def __enter__(self) -> Stopwatch:
        self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu, self.wall = time.process_time() - self._start[0], time.perf_counter() - self._start[1]


class Measurement(NamedTuple):
    """One call in a process of its own; the memory is that of the whole process, in bytes."""

    result: Any
    cpu: float
    wall: float
    peak_memory: int
    memory_before: int  # the peak before the call: the interpreter and its imports


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Measurement:
    """Call a module-level function in a new interpreter and measure it.

    Imports made inside the function count, those of its module do not. The arguments and the result travel by
    pickle. An exception in the call is raised here as RuntimeError with its traceback.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{function.__name__} died with exit code {process.exitcode}.") from None
    process.join()
    if isinstance(answer, str):
        raise RuntimeError(f"{function.__name__} failed:\n{answer}")
    return Measurement(*answer)


def _measured(sender: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    try:
        before = peak_memory()
        with Stopwatch() as watch:
            result = function(*arguments)
        sender.send((result, watch.cpu, watch.wall, peak_memory(), before))
    except BaseException:
        sender.send(traceback.format_exc())


def peak_memory() -> int:
    """The most resident memory this process has had so far, in bytes."""
    # On Linux, ru_maxrss of a spawned process starts at what its parent had; VmHWM is the process's own.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine() -> str:
    """The machine in one line: processor, cores, memory, system, Python and numpy."""
    import numpy

    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return (
        f"{_processor()}, {os.cpu_count()} cores{memory}, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {numpy.__version__}"
    )


def _processor() -> str:
    # /proc/cpuinfo has no name on ARM; lscpu knows the part numbers.
    commands = {"Linux": ["lscpu"], "Darwin": ["sysctl", "-n", "machdep.cpu.brand_string"]}
    command = commands.get(platform.system())
    if command is not None:
        try:
            environment = {**os.environ, "LC_ALL": "C"}
            text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        except (OSError, subprocess.CalledProcessError):
            text = ""
        names = [line.removeprefix("Model name:").strip() for line in text.splitlines() if "Model name:" in line]
        if names or (text and len(command) > 1):
            return names[0] if names else text.strip()
    return platform.processor() or platform.machine()


def write_table(name: str, rows: Sequence[Mapping[str, object]], note: str = "", folder: Path = RESULTS) -> str:
    """Write rows (column name to value) as ``name.md`` and ``name.csv`` and return the markdown.

    The columns are the keys of all rows in order of appearance; a row without a column leaves it empty.
    Floats get three significant digits in the markdown and all of them in the CSV.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [f"# {name}", "", f"{machine()}; {time.strftime('%Y-%m-%d')}.", ""]
    if note:
        lines += [note, ""]
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    lines += ["| " + " | ".join(line) + " |" for line in [columns, ["---"] * len(columns), *cells]]
    markdown = "\n".join(lines) + "\n"

    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown, encoding="utf-8")
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    return markdown


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|")
