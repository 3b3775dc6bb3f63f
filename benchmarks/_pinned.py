"""A fresh process on one core, and clocks that other work on the machine does not move."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


NOT_FOR_USERS = ("PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR")


def cpu_seconds(command: list[str]) -> float:
    """Of a new process and its children, which may keep bytecode, as a user's do, and no programs."""
    env = {name: value for name, value in os.environ.items() if name not in NOT_FOR_USERS}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=env | ONE_THREAD, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(module: str, settings: dict, one_core: bool = True, core: int = 0) -> list[dict]:
    """The rows that `measure(**settings)` of a benchmark's module gives, in a new process."""
    start = f"from benchmarks._pinned import pin; pin({core}); " if one_core else ""
    code = (
        f"{start}import json; from benchmarks.{module} import measure; "
        f"print(json.dumps(measure(**{settings!r})))"
    )
    env = os.environ | (ONE_THREAD if one_core else {})
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def pin(core: int = 0) -> None:
    """Stay on one core, the last but `core` of those that are allowed, where one may choose."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0), reverse=True)
        os.sched_setaffinity(0, {allowed[core % len(allowed)]})


def best(rounds: int, **calls: Callable[[], object]) -> dict[str, float]:
    """The least CPU seconds of each call, all called in turn `rounds` times after a warm-up."""
    found = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            found[name] = min(found[name], time.process_time() - start)
    return found


def peak_megabytes() -> float:
    """The most memory this process has held so far.

    `ru_maxrss` would count the process that started this one, where the system shares memory until
    the new program begins; Linux keeps a figure of the program's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
