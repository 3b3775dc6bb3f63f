"""A sample takes what it can use, and says what to do about the rest."""

import numpy as np
import pytest
import xarray

import steinax as sx

X = np.random.default_rng(0).normal(size=(4, 25, 3))


class TestAccepts:
    def test_chains(self) -> None:
        sample = sx.Sample(X, -X)
        assert (sample.chains, sample.length, sample.dim, sample.size) == (4, 25, 3, 100)
        assert sample.names == ("x[0]", "x[1]", "x[2]")

    def test_one_chain_without_its_axis(self) -> None:
        sample = sx.Sample(X[0], -X[0])
        assert (sample.chains, sample.length) == (1, 25)

    def test_draws_follow_each_other_chain_by_chain(self) -> None:
        sample = sx.Sample(X, -X)
        np.testing.assert_array_equal(sample.x, np.concatenate(X))
        np.testing.assert_array_equal(sample.score, -np.concatenate(X))

    @pytest.mark.parametrize(
        "draws",
        [X.tolist(), np.asfortranarray(X), X[::-1][::-1], (10 * X).astype(int), np.float32(X)],
        ids=["list", "Fortran order", "strided", "integers", "float32"],
    )
    def test_any_array_becomes_float64(self, draws) -> None:
        sample = sx.Sample(draws, draws)
        assert sample.dtype == np.float64
        np.testing.assert_array_equal(sample.draws, np.asarray(draws))

    def test_read_only_draws_are_not_written_to(self) -> None:
        draws = X.copy()
        draws.flags.writeable = False
        assert sx.estimate("x", sx.Sample(draws, -draws)).value.shape == (3,)

    def test_float32_on_request(self) -> None:
        assert sx.Sample(X, -X, dtype=np.float32).dtype == np.float32

    def test_divergences(self) -> None:
        flags = np.arange(100).reshape(4, 25) % 7 == 0
        for given in (flags, flags.astype(int), flags.tolist()):
            diverging = sx.Sample(X, -X, diverging=given).diverging
            assert diverging is not None
            assert diverging.dtype == bool
            np.testing.assert_array_equal(diverging, flags)
        assert sx.Sample(X[0], -X[0], diverging=flags[0]).diverging is not None
        assert sx.Sample(X, -X).diverging is None

    def test_prints_what_it_holds(self) -> None:
        names = ["mu", "a", "b"]
        assert (
            repr(sx.Sample(X, -X, names)) == "Sample(4 chains x 25 draws, 3 dimensions: mu, a, b)"
        )


class TestBlocks:
    def test_blocks_make_up_the_sample(self) -> None:
        sample = sx.Sample(X, -X, ["a", "b", "c"])
        blocks = list(sample.blocks(10))
        assert [block.size for block in blocks] == [10, 10, 5] * 4
        np.testing.assert_array_equal(np.concatenate([b.x for b in blocks]), sample.x)
        np.testing.assert_array_equal(np.concatenate([b.score for b in blocks]), sample.score)
        assert {block.names for block in blocks} == {sample.names}

    def test_blocks_keep_divergences(self) -> None:
        flags = np.arange(100).reshape(4, 25) % 7 == 0
        blocks = list(sx.Sample(X, -X, diverging=flags).blocks(10))
        parts = [block.diverging[0] for block in blocks if block.diverging is not None]
        np.testing.assert_array_equal(np.concatenate(parts), flags.ravel())

    def test_stream_can_be_read_again(self) -> None:
        stream = sx.Stream(lambda: sx.Sample(X, -X).blocks(10), chains=4)
        first, second = ([block.x for block in stream] for _ in range(2))
        np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))


def _with(value: float) -> np.ndarray:
    bad = X.copy()
    bad[1, 7, 2] = value
    return bad


class TestRefuses:
    """Every message names what is wrong and what to do next."""

    def test_scores_of_another_shape(self) -> None:
        with pytest.raises(ValueError, match=r"\(4, 25, 3\) and scores \(4, 25, 2\).*Give both as"):
            sx.Sample(X, -X[..., :2])

    @pytest.mark.parametrize("draws", [X[0, 0], X[None], X[:, :0]], ids=["1d", "4d", "empty"])
    def test_wrong_axes(self, draws: np.ndarray) -> None:
        with pytest.raises(ValueError, match=r"give \(chain, draw, dim\).*add an axis"):
            sx.Sample(draws, draws)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_values_that_are_not_finite(self, value: float) -> None:
        where = "chain 1, draw 7, dimension 2: drop those draws"
        with pytest.raises(ValueError, match=f"draws are not finite at 1 place, .*{where}"):
            sx.Sample(_with(value), -X)
        with pytest.raises(ValueError, match=f"scores are not finite at 1 place, .*{where}"):
            sx.Sample(X, _with(value))

    @pytest.mark.parametrize("kind", [complex, object, str])
    def test_what_is_not_real_numbers(self, kind: type) -> None:
        with pytest.raises(ValueError, match=r"give real numbers"):
            sx.Sample(X.astype(kind), -X)

    @pytest.mark.parametrize("names", [["a"], ["a", "b", "b"]], ids=["too few", "doubled"])
    def test_names(self, names: list[str]) -> None:
        with pytest.raises(ValueError, match=r"give one distinct name for each"):
            sx.Sample(X, -X, names)

    @pytest.mark.parametrize(
        "flags", [np.zeros((4, 24)), np.zeros(25), np.full((4, 25), 0.5), np.full((4, 25), "no")]
    )
    def test_divergences_of_another_kind(self, flags: np.ndarray) -> None:
        with pytest.raises(ValueError, match=r"diverging has shape.*give true or false"):
            sx.Sample(X, -X, diverging=flags)

    def test_other_precisions(self) -> None:
        with pytest.raises(ValueError, match=r"use float64 or float32"):
            sx.Sample(X, -X, dtype=np.float16)


class TestExtended:
    def test_everything_that_belongs_to_the_draws_is_appended(self) -> None:
        flags, log = X[..., 0] > 1, -(X**2).sum(axis=-1) / 2
        tree = {
            "mu": (("chain", "draw"), X[..., 0]),
            "size": (("chain", "draw", "part"), X[..., :2]),
        }
        known = {"diverging": flags, "log_density": log, "variables": xarray.Dataset(tree)}
        whole = sx.Sample(X, -X, **known, verified=True)
        joined = whole[:, :10].extended(whole[:, 10:])
        for name in ("draws", "scores", "diverging", "log_density"):
            np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
        for name in tree:
            np.testing.assert_array_equal(joined.variables[name], whole.variables[name])
        assert joined.verified and joined.names == whole.names

    def test_training_points_are_those_of_both(self) -> None:
        parts = [sx.Sample(X[:, :5] + i, -X[:, :5]) for i in (9, 10)]
        first = sx.Sample(X[:, :10], -X[:, :10], training=parts[0])
        second = sx.Sample(X[:, 10:], -X[:, 10:], training=parts[1])
        assert [part.draws[0, 0, 0] - X[0, 0, 0] for part in first.extended(second).training] == [
            9,
            10,
        ]

    def test_what_only_one_has_is_left_out(self) -> None:
        flags = np.zeros((4, 25), bool)
        joined = sx.Sample(X, -X, diverging=flags, verified=True).extended(sx.Sample(X, -X))
        assert joined.diverging is None and not joined.verified and joined.length == 50

    @pytest.mark.parametrize(
        "other",
        [
            sx.Sample(X[:2], -X[:2]),
            sx.Sample(X, -X, names=["a", "b", "c"]),
            sx.Sample(X, -X, log_weights=np.zeros((4, 25))),
        ],
        ids=["chains", "names", "weights"],
    )
    def test_other_draws_are_refused(self, other: sx.Sample) -> None:
        with pytest.raises(ValueError, match="give further draws of the same chains"):
            sx.Sample(X, -X).extended(other)
