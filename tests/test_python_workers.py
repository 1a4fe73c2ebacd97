"""Models written in Python in worker processes: errors, interrupts, nothing left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from small_model import Classes, data

import maxmargin as mm


class OracleTrouble(Exception):
    """Cannot be made from its message alone, so it pickles but does not unpickle."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_of_user_code_keep_type_traceback_and_example(n_jobs):
    class Failing(Classes):
        def joint_feature(self, x, y):
            if x[0] == 7.0:
                raise KeyError("this very line")
            return super().joint_feature(x, y)

    X, Y = data()
    X[4, 0] = X[6, 0] = 7.0
    with pytest.raises(KeyError, match="this very line") as caught:
        mm.train(Failing(), X, Y, n_jobs=n_jobs)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("this very line")' in text
    assert "while searching example 4 for its most violated output" in text


@pytest.mark.parametrize(("n_jobs", "kind"), [(1, OracleTrouble), (2, RuntimeError)])
def test_errors_that_cannot_travel_are_described(n_jobs, kind):
    class Failing(Classes):
        def joint_feature(self, x, y):
            raise OracleTrouble(7, "no solution")

    with pytest.raises(kind, match="7: no solution") as caught:
        mm.train(Failing(), *data(), n_jobs=n_jobs)
    assert 'raise OracleTrouble(7, "no solution")' in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_user_code_cannot_write_to_the_weights(n_jobs):
    class Writing(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            w[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        mm.train(Writing(), *data(), n_jobs=n_jobs)


def test_a_worker_that_dies_is_an_error_and_not_a_hang():
    class Dying(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            os._exit(3)

    with pytest.raises(RuntimeError, match=r"terminated|died") as caught:
        mm.train(Dying(), *data(), n_jobs=2)
    assert "A worker process failed while examples 0 to" in caught.value.__notes__[0]


def test_models_that_cannot_travel_are_an_error_only_with_workers():
    class Stuck(Classes):
        def __init__(self):
            self.handle = (number for number in range(3))

    assert mm.train(Stuck(), *data()).certificate.converged
    with pytest.raises(TypeError, match=r"cannot be pickled .*: use n_jobs=1"):
        mm.train(Stuck(), *data(), n_jobs=2)


# --------------------------------------------------------------------------------- workers and interrupts


def test_sleeping_oracles_take_half_the_time_in_two_processes():
    class Sleeping(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            time.sleep(0.02)
            return y_true

    problem = Sleeping().bind(*data(32), n_jobs=2)
    weights = problem.zero_weights()
    asleep_in_all = 32 * 0.02
    # Until both workers are there, whatever else the machine is doing.
    deadline = time.perf_counter() + 60.0
    seconds = np.inf
    while seconds > asleep_in_all / 1.5 and time.perf_counter() < deadline:
        start = time.perf_counter()
        problem.separate(problem.all_ids, weights, precise=True)
        seconds = time.perf_counter() - start
    problem.close()
    assert seconds <= asleep_in_all / 1.5


def test_a_problem_works_on_after_an_error_in_a_worker():
    class Moody(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            if w[0] > 0:
                raise ArithmeticError("moody")
            return super().loss_augmented_argmax(x, y_true, w)

    problem = Moody().bind(*data(), n_jobs=2)
    weights = problem.zero_weights()
    before = problem.separate(problem.all_ids, weights, precise=True)
    weights.exact[0] = 1.0
    with pytest.raises(ArithmeticError, match="moody"):
        problem.separate(problem.all_ids, weights, precise=True)
    weights.exact[0] = 0.0
    after = problem.separate(problem.all_ids, weights, precise=True)
    problem.close()
    problem.close()
    assert before.examples().tolist() == after.examples().tolist()


SCRIPT = """
    import os, signal, sys, time
    import numpy as np
    import maxmargin as mm

    # Shells have what they start in the background ignore interrupts, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    class Sleepy(mm.Model):
        n_features = 2

        def joint_feature(self, x, y):
            return x * y

        def loss(self, y_true, y):
            return float(y_true != y)

        def outputs(self, x):
            return [-1, 1]

        def __getstate__(self):
            os.write(1, b"sent\\n")
            return self.__dict__

        def loss_augmented_argmax(self, x, y_true, w):
            if SLEEPS and np.any(w):
                os.write(1, b"asleep\\n")  # in one piece: the workers share the pipe
                time.sleep(60)
            return super().loss_augmented_argmax(x, y_true, w)

    SLEEPS = sys.argv[2] == "sleeping"
    X = np.random.default_rng(0).normal(size=(20, 2))
    solution = mm.train(Sleepy(), X, np.sign(X[:, 0]), C=1.0, n_jobs=int(sys.argv[1]))
    print("ended", time.time())
    print(solution.certificate.message, solution.certificate.primal, solution.w.shape, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize(("n_jobs", "moment"), [(1, "sleeping"), (2, "sleeping"), (2, "starting")])
def test_an_interrupt_ends_training_at_once_with_a_usable_solution(n_jobs, moment, tmp_path):
    script = tmp_path / "sleepy.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    command = [sys.executable, script, str(n_jobs), moment]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Without a PATH there is no pgrep, as in slim containers: joblib must be able to end the workers nevertheless.
    with subprocess.Popen(command, start_new_session=True, env=os.environ | {"PATH": ""}, **pipes) as process:
        try:
            if n_jobs == 2:
                assert process.stdout.readline() == "sent\n"
            if moment == "sleeping":
                assert process.stdout.readline() == "asleep\n"
            else:
                time.sleep(0.1)  # the workers take longer than that to import what they need
            # As a terminal does: the workers get it as well.
            os.killpg(process.pid, signal.SIGINT)
            sent = time.time()
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    lines = [line for line in out.splitlines() if line != "asleep"]
    assert process.returncode == 0
    assert float(lines[0].split()[1]) - sent < 5.0  # a tenth of a second on an idle machine, never the sixty slept
    assert lines[1] == f"training was interrupted {20.0 if moment == 'sleeping' else None} (2,)"
    assert "training was interrupted" in err
    assert "Traceback" not in err
    # What we share is given back. (joblib's tracker warns now and then of a semaphore of its own, which is gone by then.)
    assert "shared_memory" not in err


def test_workers_leave_nothing_behind(tmp_path):
    script = tmp_path / "awake.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, "2", "awake"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "the stopping rule was met" in done.stdout
    assert done.stderr == ""


def test_reaching_max_iter_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 was reached"):
        mm.train(Classes(), *data(30), C=100.0, tol=1e-9, max_iter=2)
