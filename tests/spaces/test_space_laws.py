"""Every space keeps its word, each row of the registry by the same checks.

Audits of right scores refuse by design once in 50,000; the others are exact, or hold with a wide margin.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import registry
import steinax as sx
from registry import SpaceRow
from spaces.space_targets import SpaceTarget
from steinax._numerics import precision
from steinax.auditing import _identities

KERNEL, CENTRES = sx.kernels.SquaredExponential(0.9), sx.Landmarks(6)
rows = pytest.mark.parametrize("row", registry.SPACES, ids=str)


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _families(space: sx.data.AbstractSpace) -> dict[str, sx.families.AbstractFamily]:
    first, second = space.operator, space.potential_operator
    return {
        "polynomial": sx.Polynomial(3, operator=second),
        "scaled polynomial": sx.Polynomial(2, operator=-0.5 * second),
        "kernel, fields": sx.KernelTranslates(KERNEL, CENTRES, operator=first),
        "kernel, potentials": sx.KernelTranslates(KERNEL, CENTRES, operator=second),
        "network, field": sx.Network(4, 1, operator=first),
        "network, potential": sx.Network(4, 1, operator=second),
    }


def _points(target: SpaceTarget, n: int) -> tuple[jax.Array, jax.Array]:
    x = target.draw(np.random.default_rng(4), n)
    return jnp.asarray(x), jnp.asarray(target.score(x))


def _means(
    target: SpaceTarget, families: dict[str, sx.families.AbstractFamily]
) -> dict[str, float]:
    """|E g| of every family's functions by the rule, in root mean squares of g: the largest."""
    x, score = _points(target, 6)
    states = {name: family.setup(x, score) for name, family in families.items()}
    params = {
        name: laws.random_params(family, states[name], x) for name, family in families.items()
    }

    @jax.jit
    @jax.vmap
    def values(x, score):  # all in one program: compiling is what takes the time
        return {
            name: family.evaluate(states[name], params[name], x, score)
            for name, family in families.items()
        }

    found = values(jnp.asarray(target.nodes), jnp.asarray(target.score(target.nodes)))

    def worst(g):
        return float(np.max(np.abs(target.weights @ g) / np.sqrt(target.weights @ g**2)))

    return {name: worst(np.asarray(g)) for name, g in found.items()}


class TestMeanIsZero:
    @pytest.mark.slow
    @rows
    def test_of_every_family(self, row: SpaceRow) -> None:
        target = row.make()
        found = _means(target, _families(target.space))
        assert max(found.values()) < target.tolerance, found

    @rows
    def test_of_the_identities(self, row: SpaceRow) -> None:
        """The series of the audit on the nodes of the rule, weighted, for right scores and not for wrong."""
        target = row.make()
        draws = target.nodes[None]

        def mean(scores):
            series = target.space.identities(draws, scores)[0]
            return np.abs(target.weights @ series) / np.sqrt(target.weights @ series**2 + 1e-300)

        right = target.score(draws)
        assert mean(right).max() < 1e2 * target.tolerance
        assert mean(right + 0.5 * np.abs(target.nodes[:, ::-1])[None] + 0.1).max() > 1e-2

    @rows
    def test_the_operators_of_the_reals_fail(self, row: SpaceRow) -> None:
        """What goes wrong without a space: fields that do not vanish at the boundary, and worse."""
        reals = {"polynomial": sx.Polynomial(3), "kernel": sx.KernelTranslates(KERNEL, CENTRES)}
        found = _means(row.make(), reals)
        assert min(found.values()) > 1e-3


@rows
@pytest.mark.parametrize("first", [True, False], ids=["fields", "potentials"])
def test_stein_kernel_is_symmetric_and_positive(row: SpaceRow, first: bool) -> None:
    target = row.make()
    x, score = _points(target, 15)
    operator = target.space.operator if first else target.space.potential_operator
    assert operator.acts_on_fields == first
    laws.check_positive(laws.autodiff_pairs(KERNEL, operator, x, score))


class TestAudit:
    @rows
    def test_right_scores_pass(self, row: SpaceRow) -> None:
        for seed in range(5):
            assert sx.audit(row.make().sample(seed)).passed

    @rows
    def test_wrong_scores_are_refused(self, row: SpaceRow) -> None:
        target = row.make()
        sample = target.sample(0)
        wrong = sx.Sample(sample.draws, sample.scores + 1.0 + sample.draws, space=target.space)
        report = sx.audit(wrong)
        assert not report.passed
        assert "steinax.spaces" in report.fatal[0].message
        with pytest.raises(sx.AuditError):
            sx.estimate("x", wrong)

    @rows
    def test_identities_are_of_unit_size(self, row: SpaceRow) -> None:
        sample = row.make().sample(0)
        series = row.make().space.identities(sample.draws, sample.scores)
        assert series.shape[:2] == sample.draws.shape[:2]
        assert np.all(np.abs(_identities.tested([series], sample.dim).deviation) < 0.5)


class TestDomains:
    @rows
    def test_operators_of_the_reals_are_refused(self, row: SpaceRow) -> None:
        with pytest.raises(TypeError, match="mean zero on reals"):
            sx.estimate("x", row.make().sample(0), sx.Polynomial(2))

    @rows
    def test_its_operators_are_refused_elsewhere(self, row: SpaceRow) -> None:
        space = row.make().space
        x = np.random.default_rng(0).normal(size=(4, 100, 2))
        with pytest.raises(TypeError, match="draws live on reals"):
            sx.fit("x", sx.Sample(x, -x), sx.Polynomial(2, operator=space.potential_operator))

    @rows
    def test_draws_outside_are_refused(self, row: SpaceRow) -> None:
        target = row.make()
        x = target.draw(np.random.default_rng(0), 30)
        with pytest.raises(ValueError, match=r"give|divide"):
            sx.Sample(x - 2.3, x, space=target.space)


class TestEstimates:
    @pytest.mark.slow
    @rows
    def test_of_no_family_cover_the_truth_and_gain(self, row: SpaceRow) -> None:
        """Five standard errors: at most one false alarm in 10^5 for each of a few integrands."""
        target = row.make()
        est = sx.estimate({"x": "x", "cosine": lambda x: jnp.cos(2 * x[0])}, target.sample(1))
        cosine = target.mean(lambda x: np.cos(2 * x[:, 0]))
        truth = np.append(target.mean(lambda x: x), cosine)
        assert np.all(np.abs(est.value - truth) < 5 * est.mcse + 1e-9)
        gained = est.worth > 1
        if est.chosen[-1] == "plain Monte Carlo":
            assert row.name == "counts, Poisson"  # a cosine of ten states
            gained = gained[:-1]
        assert np.all(gained)

    @pytest.mark.slow
    @rows
    def test_a_fit_has_mean_zero_in_its_own_coordinates(self, row: SpaceRow) -> None:
        target = row.make()
        family = target.space.family(600, target.nodes.shape[1])
        g = sx.fit({"cosine": lambda x: jnp.cos(2 * x[0])}, target.sample(2, 4, 150), family)
        values = g(target.nodes, target.score(target.nodes))[:, 0]
        size = np.sqrt(target.weights @ values**2)
        assert size > 0.1
        assert abs(target.weights @ values) < 1e2 * target.tolerance * max(size, 1.0)

    @pytest.mark.slow
    @rows
    def test_weights_are_those_of_the_space(self, row: SpaceRow) -> None:
        target = row.make()
        draws = sx.weigh(target.sample(1, 4, 100))
        mean = draws.mean("x")
        truth = target.mean(lambda x: x)
        assert np.all(np.abs(mean.value - truth) < 5 * mean.mcse + 1e-9)


@rows
def test_single_precision_gives_single_precision(row: SpaceRow) -> None:
    target = row.make()
    x = np.asarray(target.draw(np.random.default_rng(0), 1)[0], np.float32)
    score = np.asarray(target.score(x), np.float32)
    with precision(np.float32):
        value = target.space.potential_operator(jnp.sum, jnp.asarray(x), jnp.asarray(score))
        assert value.dtype == jnp.float32
