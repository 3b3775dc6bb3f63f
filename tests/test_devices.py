"""The same compiled functions take arrays that are spread over several devices."""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import dataclasses
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
import steinax as sx
from steinax.fitting import prepare

x = np.random.default_rng(0).normal(size=(4, 64, 3))
sample = sx.Sample(x, -(x**3))
wanted = sx.integrands({"x": "x", "square": lambda x: x**2}, sample)
mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, PartitionSpec("data"))
folds = sx.CrossFit(4).boundaries(4, 64)
key = jax.random.key(0)
with jax.enable_x64(True):
    for family in (sx.Polynomial(2), sx.Polynomial(1) + sx.KernelTranslates()):
        problem, _ = prepare(wanted, sample, family, None, None)
        spread = {name: jax.device_put(getattr(problem, name), rows) for name in ("x", "score", "f")}
        sharded = dataclasses.replace(problem, **spread)
        assert len(sharded.x.sharding.device_set) == 4
        one, many = (sx.Exact().crossfit(p, folds, key).rest for p in (problem, sharded))
        np.testing.assert_allclose(many, one, rtol=1e-9, atol=1e-9)
        one, many = (sx.Stochastic(epochs=2).solve(p, key).intercept for p in (problem, sharded))
        np.testing.assert_allclose(many, one, rtol=1e-9, atol=1e-9)
print("equal on", jax.device_count(), "devices")
"""


@pytest.mark.slow
def test_four_devices_give_what_one_gives():
    """Exact cross-fitting, primal and dual, and a stochastic fit, on four virtual devices."""
    flags = "--xla_force_host_platform_device_count=4"
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "equal on 4 devices", run.stderr
