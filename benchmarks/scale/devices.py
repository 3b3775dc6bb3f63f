"""Draws on four virtual devices of one process, and in two processes, against one device.

Virtual devices share the cores of one machine: equality is measured here, not speed.
"""

import json
import os
import socket
import subprocess
import sys

import numpy as np

import steinax as sx

from .._pinned import ROOT
from ..speed._problems import skewed_sample

N, DIM = 1000, 10
FAMILIES = {
    "Polynomial(2)": sx.Polynomial(2),
    "Polynomial(2) + KernelTranslates()": sx.Polynomial(2) + sx.KernelTranslates(),
}
LAYOUTS = {"1 process, 1 device": (1, 1), "1 process, 4 devices": (1, 4), "2 processes": (2, 1)}
LONGEST = 600  # seconds; a process whose partner died waits for ever


def once(address: str, processes: int, process: int) -> dict[str, list[float]]:
    """The estimates of every family from this process's chains and those of the others."""
    import jax

    if processes > 1:
        jax.distributed.initialize(address, num_processes=processes, process_id=process)
    sample, f = skewed_sample(N, DIM)
    each = sample.chains // processes
    own = slice(process * each, (process + 1) * each)
    local = sx.Sample(sample.draws[own], sample.scores[own])
    values = sx.data.integrands({name: one[own] for name, one in f.items()}, local)
    whole, wanted = sx.data.gather_chains(local), sx.data.gather_chains(values)
    found = {}
    for name, family in FAMILIES.items():
        est = sx.estimate(wanted, whole, family, solver=sx.Spread())
        found[name] = [*est.value.tolist(), *est.mcse.tolist()]
    return found


def measure() -> list[dict]:
    """The largest relative difference from one device, for every family and layout."""
    results = {layout: _run(*shape) for layout, shape in LAYOUTS.items()}
    one = results.pop("1 process, 1 device")
    return [
        {
            "family": family,
            "layout": layout,
            "difference": float(np.max(np.abs(np.divide(found[family], one[family]) - 1))),
            "at most": 1e-9,
        }
        for layout, found in results.items()
        for family in FAMILIES
    ]


def _run(processes: int, devices: int) -> dict[str, list[float]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    code = (
        "import json, sys; from benchmarks.scale.devices import once; "
        f"print(json.dumps(once({address!r}, {processes}, int(sys.argv[1]))))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(i)],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    try:
        printed = [one.communicate(timeout=LONGEST)[0] for one in started]
    finally:
        for one in started:
            one.kill()
    return json.loads(printed[0].splitlines()[-1])
