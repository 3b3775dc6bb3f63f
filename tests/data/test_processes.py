"""Two processes with two chains each give what one process gives with all four."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

SCRIPT = """
import json, sys
import jax, numpy as np
import steinax as sx

port, count, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if count > 1:
    address = f"127.0.0.1:{port}"
    jax.distributed.initialize(address, num_processes=count, process_id=process)
x = np.random.default_rng(0).normal(size=(4, 64, 3))
own = x[process * 4 // count : (process + 1) * 4 // count]
local = sx.Sample(own, -(own**3))
sample = sx.data.gather_chains(local)
f = sx.data.gather_chains(sx.data.integrands({"x": "x", "square": lambda x: x**2}, local))
kernel = sx.Polynomial(1) + sx.KernelTranslates()
found = {}
for name, family in (("moments", sx.Polynomial(2)), ("kernel", kernel)):
    est = sx.estimate(f, sample, family, solver=sx.Spread(), audit="off")
    found[name] = [est.value.tolist(), est.mcse.tolist(), est.note]
g = sx.fit(f, sample, sx.Polynomial(2), solver=sx.Spread(sx.Stochastic(epochs=2)))
found["stochastic"] = [g.intercept.tolist(), g(x, -x).ravel().tolist(), g.note]
print(json.dumps(found))
"""
LONGEST = 280  # seconds; a process whose partner died waits for ever


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _run(count: int) -> list[dict]:
    port = str(_free_port())
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), port, str(count)]
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    started = [
        subprocess.Popen(
            [*command, str(i)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for i in range(count)
    ]
    try:
        ended = [process.communicate(timeout=LONGEST) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, errors) in zip(started, ended, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@pytest.mark.slow
def test_two_processes_give_what_one_gives():
    """Moments, kernel rows and stochastic batches; both processes hold the same estimate."""
    first, second = _run(2)
    (one,) = _run(1)
    assert first == second
    for name, (values, others, note) in one.items():
        assert "on 1 device:" in note
        assert "on 2 devices:" in first[name][2]
        np.testing.assert_allclose(first[name][0], values, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(first[name][1], others, rtol=1e-7, atol=1e-9)
