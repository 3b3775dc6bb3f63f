"""How the suite is used: what it lists, what it says on failure, and what it needs."""

import subprocess
import sys

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax import checks


class Shifted(sx.Polynomial):
    """Features with a mean."""

    def features(self, state, x, score):
        return super().features(state, x, score) + 0.01


def test_failure_names_the_thing_the_check_and_the_remedy() -> None:
    with pytest.raises(checks.CheckFailed) as caught:
        checks.check_family(Shifted(1))
    message = str(caught.value)
    assert message.startswith("Shifted fails the check 'mean is zero in one dimension': E g is")
    assert "What to do: a control variate must have mean zero" in message


def test_names_of_checks_are_distinct_and_each_says_what_to_do() -> None:
    for thing in (
        sx.Polynomial(1),
        sx.kernels.Matern52(1.0),
        sx.Exact(),
        sx.CrossFit(),
        sx.estimate,
    ):
        found = dict(checks.checks_for(thing))
        assert len(found) == len(list(checks.checks_for(thing))) > 4
        assert all(len(check.advice) > 20 for check in found.values())


def test_checks_that_do_not_apply_are_left_out() -> None:
    linear = {name for name, _ in checks.checks_for(sx.Polynomial(1))}
    network = {name for name, _ in checks.checks_for(sx.Network(4, 1))}
    assert "overrides agree with the defaults" in linear - network
    assert "starts as plain monte carlo" in network
    landmarks = {
        name for name, _ in checks.checks_for(sx.KernelTranslates(centres=sx.Landmarks(3)))
    }
    assert "order of chains changes nothing" in linear - landmarks


def test_what_has_no_checks_is_refused() -> None:
    with pytest.raises(TypeError, match="there are no checks for a int: give a family"):
        list(checks.checks_for(3))


def test_hypothesis_is_optional_and_the_suite_is_not_imported_with_steinax() -> None:
    code = (
        "import sys; import steinax; assert 'steinax.checks' not in sys.modules; "
        "import steinax.checks; assert 'hypothesis' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_family_of_ones_own_passes() -> None:
    class Sines(sx.families.AbstractLinearFamily):
        operator: sx.operators.AbstractOperator = eqx.field(default_factory=sx.ScalarLangevin)

        def setup(self, x, score):
            return None

        def basis(self, state, x):
            return jnp.sin(x / 2)

    names = [name for name, check in checks.checks_for(Sines()) if check() is None]
    assert "mean is zero in two dimensions" in names


class TestOutcome:
    def test_gives_what_steinax_raises_on_purpose(self) -> None:
        found = checks.outcome(lambda: sx.Sample(np.zeros(3), np.zeros(3)))
        assert isinstance(found, ValueError)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ([].pop, "a bare IndexError"),
            (lambda: np.linalg.inv(np.zeros((2, 2))), "a bare LinAlgError"),
            (lambda: np.float64(1.0) / np.zeros(1), "a RuntimeWarning, not an error"),
            (lambda: np.zeros(3).reshape(2, 2), "a bare ValueError"),
            (lambda: len(3), "a bare TypeError"),
        ],
    )
    def test_refuses_what_nobody_meant(self, call, message) -> None:
        with pytest.raises(checks.CheckFailed, match=message):
            checks.outcome(call)

    def test_an_integrand_may_raise_what_it_likes(self) -> None:
        x = np.random.default_rng(0).normal(size=(2, 8, 1))
        found = checks.outcome(lambda: sx.estimate(lambda x: {}[0], sx.Sample(x, -x)))
        assert isinstance(found, KeyError)
        assert any("came from the integrand 'f'" in note for note in found.__notes__)
