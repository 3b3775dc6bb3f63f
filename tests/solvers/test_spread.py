"""Draws that are spread over several devices give what one device gives."""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import jax, numpy as np
import steinax as sx

x = np.random.default_rng(0).normal(size=(4, 64, 3))
sample = sx.Sample(x, -(x**3))
f = {"x": "x", "square": lambda x: x**2}
POLYNOMIAL, KERNEL = sx.Polynomial(2), sx.Polynomial(1) + sx.KernelTranslates()
for family in (POLYNOMIAL, KERNEL):
    settings = {"audit": "off", "split": sx.CrossFit(4)}
    one = sx.estimate(f, sample, family, **settings)
    many = sx.estimate(f, sample, family, solver=sx.Spread(), **settings)
    assert many.note.startswith("4 folds, on 4 devices"), many.note
    np.testing.assert_allclose(many.value, one.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(many.mcse, one.mcse, rtol=1e-7)
steps = (sx.ConjugateGradient(tolerance=1e-13), sx.Stochastic(epochs=2))
for family, solver in ((KERNEL, sx.Exact()), *((POLYNOMIAL, one) for one in steps)):
    one = sx.fit(f, sample, family, solver=solver)
    many = sx.fit(f, sample, family, solver=sx.Spread(solver))
    np.testing.assert_allclose(many(x, -x), one(x, -x), rtol=1e-9, atol=1e-9)
two = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])
assert "on 2 devices" in sx.fit(f, sample, sx.Polynomial(2), solver=sx.Spread(mesh=two)).note
try:
    sx.fit("x", sx.Sample(x[:1, :63], -x[:1, :63]), sx.Polynomial(2), solver=sx.Spread())
except ValueError as error:
    assert "leave out the first 3 of them" in str(error), error
else:
    raise AssertionError("63 draws on 4 devices")
print("equal on", jax.device_count(), "devices")
"""


@pytest.mark.slow
def test_four_devices_give_what_one_gives():
    """Moments, kernel rows, conjugate gradients and stochastic batches, on four virtual devices."""
    flags = "--xla_force_host_platform_device_count=4"
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.stdout.strip() == "equal on 4 devices", run.stderr
