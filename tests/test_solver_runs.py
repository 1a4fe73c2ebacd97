"""Runs of solvers: the same bits for any number of threads, and an end at once by Ctrl-C."""

import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import small_model
from tagging_problem import column, train

import maxmargin as mm
from maxmargin.solvers import SOLVERS

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


# -------------------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("one-slack", {"cache_size": 10}),
        ("one-slack", {"cache_size": 0}),
        ("one-slack", {"cache_size": 5, "refresh": 0.3}),
        ("line-search", {}),
        ("bcfw", {"batch_size": 5}),
        ("n-slack", {}),
        ("block-dual", {}),
        ("sdm", {}),
        ("sdm", {"batch_size": 16}),
        ("dcd", {"batch_size": 16}),
        ("dcd-light", {}),
        ("cpd", {}),
    ],
)
def test_two_threads_make_the_same_iterates_as_one(solver, options, rescaling):
    tol = 1e-5 if solver in ("block-dual", "one-slack", "n-slack") else 1e-2
    loss = min(SOLVERS[solver].losses)
    one, two = (train(solver, rescaling, loss=loss, tol=tol, n_jobs=n, solver_options=options) for n in (1, 2))
    for name in ("primal", "dual", "oracle_calls"):
        assert column(one, name) == column(two, name)
    assert np.array_equal(one.w, two.w)
    assert one.certificate == two.certificate


def test_the_same_random_state_gives_the_same_bits_and_another_one_the_same_optimum():
    one, two, other = (train("n-slack", random_state=seed) for seed in (3, 3, 4))
    assert column(one, "dual") == column(two, "dual")
    assert np.array_equal(one.w, two.w)
    assert not np.array_equal(one.w, other.w)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-5)


# ---------------------------------------------------------------------------------------------------- interrupts

LONG_TRAINING = """
    import json, signal, sys, time, warnings
    import numpy as np
    import maxmargin as mm

    # Shells have what they start in the background ignore interrupts, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    solver, rescaling, n_jobs, loss = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 30, size=2000)
    X = [rng.normal(size=(length, 20)) for length in lengths]
    Y = [rng.integers(9, size=length) for length in lengths]

    def callback(record):
        # A sweep of n-slack with its QPs, or of cpd, takes many seconds here: it is interrupted in the middle.
        if record["iteration"] == (1 if solver in ("n-slack", "cpd") else 2):
            print("started", flush=True)

    options = dict(tol=0.0, max_iter=None, max_time=60, n_jobs=n_jobs, callback=callback)
    model = mm.models.Chain(9)
    solution = mm.train(model, X, Y, 1.0, solver=solver, loss=loss, rescaling=rescaling, **options)
    finished = time.time()
    certificate = solution.certificate
    print(json.dumps({
        "finished": finished,
        "message": certificate.message,
        "converged": certificate.converged,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "finite": bool(np.isfinite(solution.w).all()),
        "predicts": len(model.predict(X[:3], solution.w)),
        "iterations": len(solution.history),
    }), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    ("solver", "rescaling", "n_jobs"),
    [
        ("one-slack", "margin", 1),
        ("one-slack", "slack", 2),
        ("n-slack", "margin", 1),
        ("block-dual", "margin", 1),
        ("line-search", "margin", 2),
        ("bcfw", "margin", 1),
        ("sdm", "margin", 1),
        ("dcd", "slack", 2),
        ("cpd", "margin", 1),
    ],
)
def test_an_interrupt_ends_training_at_once_with_a_usable_solution(solver, rescaling, n_jobs):
    command = [sys.executable, "-c", textwrap.dedent(LONG_TRAINING), solver, rescaling, str(n_jobs)]
    command.append(min(SOLVERS[solver].losses))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n", process.stderr.read()
        time.sleep(0.4)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    result = json.loads(output)
    assert result["finished"] - sent < 5.0  # a tenth of a second on an idle machine, never the sixty of max_time
    assert result["message"] == "training was interrupted"
    assert not result["converged"]
    assert result["finite"]
    assert result["predicts"] == 3
    assert result["iterations"] >= 1
    assert 0 <= result["dual"] <= result["primal"] < np.inf


def test_ctrl_c_while_auto_measures_the_oracle_ends_with_a_certificate():
    class Interrupted(small_model.Classes):
        def loss_augmented_argmax(self, x, y, w):
            raise KeyboardInterrupt

    X, Y = small_model.data(30)
    with pytest.warns(UserWarning, match="interrupted"):
        solution = mm.train(Interrupted(), X, Y)
    assert not solution.certificate.converged
    assert not solution.w.any()
