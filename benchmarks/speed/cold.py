"""A fresh process with nothing compiled: the first estimate against the second, and the README's table."""

import json
import os
import subprocess
import sys
import tempfile

from .._pinned import ROOT

AT_MOST = {"first": 1.5, "new length": 1.2, "README": 5.0}
PROCESS = """
import json, time
import jax.numpy as jnp, numpy as np, steinax as sx

def seconds(sample):
    f = {"cube": lambda x: x[0] ** 3, "sine": lambda x: jnp.sin(x[1]), "exp": lambda x: jnp.exp(x[2] / 2)}
    start = time.process_time()
    sx.estimate(f, sample)
    return time.process_time() - start

x = np.log(np.random.default_rng(0).gamma(3.0, size=(4, 250, 10)))
whole, part = (sx.Sample(one, 3.0 - np.exp(one)) for one in (x, x[:, :200]))
print(json.dumps([seconds(one) for one in (whole, whole, part, part)]))
"""
README = """
import contextlib, io, json, re, time
blocks = re.findall(r"```python\\n(.*?)```", open("README.md", encoding="utf-8").read(), re.DOTALL)
with contextlib.redirect_stdout(io.StringIO()):
    exec(blocks[0] + blocks[1])
print(json.dumps([time.process_time()]))
"""


def measure(rounds: int = 3) -> list[dict]:
    """CPU seconds and their ratios, each the least of some processes: busy machines only add to them."""
    first, second, other, again = map(
        min, zip(*(_process(PROCESS) for _ in range(rounds)), strict=True)
    )
    readme = min(_process(README)[0] for _ in range(rounds))
    return [
        _row("first", "first estimate / second", first / second, first),
        _row("new length", "first with another number of draws / second", other / again, other),
        _row("README", "from python to the README's table", readme, readme),
    ]


def _row(name: str, piece: str, figure: float, seconds: float) -> dict:
    return {"piece": piece, "figure": figure, "at most": AT_MOST[name], "CPU seconds": seconds}


def _process(code: str) -> list[float]:
    """What a new process prints that finds nothing compiled and keeps nothing."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=env | {"JAX_COMPILATION_CACHE_DIR": folder},
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])
