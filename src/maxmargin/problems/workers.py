"""Worker processes that hold the data and are sent weights: how oracles written in Python run in parallel.

The function (with the model and the data in it) is pickled once and unpickled once in each worker. For every batch w
is written to one block of shared memory that all workers see; only example numbers travel to them and only results
travel back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

# Through loky: joblib carries a copy of cloudpickle up to some version and depends on the package from then on.
from joblib.externals.loky.cloudpickle_wrapper import dumps, loads  # type: ignore[import-untyped]
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Result = TypeVar("Result")

# Tasks that each worker gets of a batch: enough to even out examples that take longer, few enough to cost nothing.
_TASKS_PER_WORKER = 8
# Waiting is cut into such pieces: some platforms deliver no signal to a thread that waits for ever.
_PATIENCE_S = 0.1


class WorkerPool(Generic[Result]):
    """Worker processes that answer ``function(ids, w)``.

    The pool starts when it is first used, and again after an error or an interrupt, both of which kill the workers.

    Parameters
    ----------
    function : callable
        Takes example numbers and read-only weights; whatever it needs must be reachable from it. It is pickled by value
        where it was defined in ``__main__``, a notebook or another function.
    n_weights : int
        The length of w.
    n_jobs : int
        How many processes.

    Attributes
    ----------
    n_answered : int
        For how many example numbers results have come back.
    """

    def __init__(self, function: Callable[[IntArray, FloatArray], Result], n_weights: int, n_jobs: int) -> None:
        self._function = function
        self._n_weights = n_weights
        self._n_jobs = n_jobs
        self._pool: _Processes | None = None
        self.n_answered = 0

    def map(self, ids: IntArray, w: FloatArray) -> list[Result]:
        """Return the results for consecutive pieces of ``ids``, in their order.

        Laid end to end they are the same for any ``n_jobs`` if ``function`` treats each example on its own.
        """
        try:
            if self._pool is None:
                payload = _pickled(self._function)
                with _interrupts_held_back():
                    self._pool = _Processes(payload, self._n_weights, self._n_jobs)
            return self._pool.map(self._pieces(ids), w, self._note_answer)
        except BaseException:
            # Tasks of this batch may still run, and read w: they must not survive it.
            self._stop(kill=True)
            raise

    def close(self) -> None:
        """End the workers and give the shared memory back."""
        self._stop(kill=False)

    def _note_answer(self, piece: IntArray) -> None:
        self.n_answered += len(piece)

    def _pieces(self, ids: IntArray) -> list[IntArray]:
        return [piece for piece in np.array_split(ids, _TASKS_PER_WORKER * self._n_jobs) if len(piece)]

    def _stop(self, *, kill: bool) -> None:
        if self._pool is not None:
            self._pool.stop(kill=kill)
            self._pool = None


# ------------------------------------------------------------------------------------------ in the parent


class _Processes:
    """A running pool with its shared memory."""

    def __init__(self, payload: bytes, n_weights: int, n_jobs: int) -> None:
        self._n_weights = n_weights
        self._n_jobs = n_jobs
        self._running: dict[Future[Any], int] = {}  # tasks that are out, with their places in the order
        self._memory = _allocate(n_weights)
        # Also runs when the pool is forgotten and when the interpreter ends; the executor sees to itself then.
        self._release = weakref.finalize(self, _release, self._memory)
        self._executor = ProcessPoolExecutor(
            n_jobs, initializer=_set_up, initargs=(payload, self._memory.name, n_weights)
        )
        # After the lines above, which start resource trackers: doing so unblocks the signal.
        with _children_deaf():
            self._start: Future[Any] = self._executor.submit(os.getpid)

    def map(self, pieces: list[IntArray], w: FloatArray, note_answer: Callable[[IntArray], None]) -> list[Any]:
        np.ndarray(self._n_weights, np.float64, buffer=self._memory.buf)[:] = w
        results: list[Any] = [None] * len(pieces)
        submitted, failed_at = 0, len(pieces)
        while submitted < min(len(pieces), failed_at) or self._running:
            # No more at a time than the executor's queue holds: see stop.
            while submitted < min(len(pieces), failed_at) and len(self._running) < 2 * self._n_jobs:
                self._running[self._executor.submit(_run, pieces[submitted])] = submitted
                submitted += 1
            for future in wait(self._running, _PATIENCE_S, FIRST_COMPLETED).done:
                k = self._running.pop(future)
                try:
                    results[k] = future.result()
                except Exception as error:
                    out = [k, *self._running.values()]
                    first, last = pieces[min(out)][0], pieces[max(out)][-1]
                    error.add_note(f"A worker process failed while examples {first} to {last} were searched.")
                    raise
                if isinstance(results[k], _Failure):
                    failed_at = min(failed_at, k)
                else:
                    note_answer(pieces[k])
            # Of several errors the first in the order of the examples, as it would be with one process.
            if failed_at < len(pieces) and all(k > failed_at for k in self._running.values()):
                results[failed_at].raise_again()
        return results

    def stop(self, *, kill: bool) -> None:
        # The executor's thread stumbles over tasks that are not in its queue yet when it is told to kill the workers.
        tasks, deadline = [self._start, *self._running], time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline and not all(task.running() or task.done() for task in tasks):
            time.sleep(0.001)
        self._executor.shutdown(wait=True, kill_workers=kill)
        self._release()


def _release(memory: SharedMemory) -> None:
    memory.close()
    memory.unlink()


def _pickled(function: Callable[..., Any]) -> bytes:
    try:
        return bytes(dumps(function))
    except Exception as error:
        raise TypeError(
            f"n_jobs > 1 sends the model, X and Y to worker processes, but they cannot be pickled ({error}): use "
            "n_jobs=1, or give the model a __getstate__ that leaves out what cannot travel."
        ) from error


def _allocate(n_weights: int) -> SharedMemory:
    size = 8 * n_weights
    memory = SharedMemory(create=True, size=size)
    try:
        # Linux hands out shared memory that it does not have and kills who writes to it; this asks for all of it now.
        if sys.platform == "linux":
            os.posix_fallocate(memory._fd, 0, size)  # type: ignore[attr-defined]
    except OSError as error:
        memory.close()
        memory.unlink()
        raise OSError(
            error.errno,
            f"n_jobs > 1 needs {size} bytes of shared memory for the weights, which the system does not have "
            f"({error.strerror}): enlarge it (/dev/shm; docker run --shm-size) or use n_jobs=1.",
        ) from error
    return memory


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait: it must not find a half-made pool."""
    handler = signal.getsignal(signal.SIGINT)
    # Other threads are never interrupted.
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Any] = []
    # Not by blocking the signal, which any other thread could take.
    signal.signal(signal.SIGINT, lambda *details: came.append(details))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(*came[0])


@contextlib.contextmanager
def _children_deaf() -> Iterator[None]:
    """Start child processes with SIGINT blocked: Ctrl-C must not hit them before they have said to ignore it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ------------------------------------------------------------------------------------------- in a worker


class _Attached(SharedMemory):
    """Shared memory of the parent, released by the end of this process."""

    def __init__(self, name: str) -> None:
        if sys.version_info >= (3, 13):
            super().__init__(name, track=False)
            return
        # The parent owns the block; older versions would have this process's tracker remove it, or warn about it.
        register = resource_tracker.register
        resource_tracker.register = lambda *_: None
        try:
            super().__init__(name)
        finally:
            resource_tracker.register = register

    def __del__(self) -> None:
        # User code may have kept a view of w, and closing under a view is an error.
        pass


@dataclass
class _Worker:
    """What a worker process holds."""

    payload: bytes | None
    memory: _Attached
    w: FloatArray
    function: Callable[[IntArray, FloatArray], Any] | None = None


_worker: _Worker | None = None


def _set_up(payload: bytes, name: str, n_weights: int) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    memory = _Attached(name)
    w = np.ndarray(n_weights, np.float64, buffer=memory.buf)
    w.flags.writeable = False
    _worker = _Worker(payload, memory, w)


def _run(ids: IntArray) -> Any:
    try:
        assert _worker is not None
        if _worker.function is None:
            # Not in _set_up: an error in a task reaches the parent, one in the set-up only breaks the pool.
            _worker.function = loads(_worker.payload)
            _worker.payload = None
        return _worker.function(ids, _worker.w)
    except BaseException as error:
        return _Failure.of(error)


# ------------------------------------------------------------------------------------------------- errors


class RemoteTraceback(Exception):
    """The traceback of an error that happened in a worker process, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


@dataclass
class _Failure:
    """An error in a worker, in a form that always travels."""

    pickled: bytes | None
    text: str
    summary: str

    @classmethod
    def of(cls, error: BaseException) -> _Failure:
        text = "".join(traceback.format_exception(error))
        summary = "".join(traceback.format_exception_only(error)).strip()
        try:
            pickled = dumps(error)
            # Errors with arguments of their own are often written so that they pickle but do not unpickle.
            loads(pickled)
        except Exception:
            return cls(None, text, summary)
        return cls(pickled, text, summary)

    def raise_again(self) -> NoReturn:
        cause = RemoteTraceback(self.text)
        if self.pickled is None:
            raise RuntimeError(f"a worker process failed: {self.summary}") from cause
        raise loads(self.pickled) from cause
