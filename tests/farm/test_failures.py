"""A posterior that fails is a row that says why, and the others are what they were."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.farm._many import BatchPieces

COUNT = 24


@pytest.fixture(scope="module")
def right() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(COUNT, 4, 100, 2))
    return x, -x


def _spoilt(right: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
    x, scores = (array.copy() for array in right)
    x[1, 2, 3, 0] = np.nan
    scores[2, 0, 0, 1] = np.inf
    scores[4] *= -1
    x[6, ..., 1] = 0.25
    x[8] = 1.0
    x[9, 1], scores[9, 1] = x[9, 0], scores[9, 0]
    x[11, 3] = x[11, 3, 0]
    scores[12] *= 2
    scores[15] = scores[15][..., ::-1]
    scores[17] = 0.0
    scores[20, 0, 0, 0] = 1e200
    kinds = {
        1: "not finite",
        2: "not finite",
        4: "sign",
        6: "constant",
        8: "repeated",
        9: "duplicate",
        11: "stuck",
        12: "tempered",
        15: "order",
        17: "scores",
        20: "failed",
    }
    return x, scores, kinds


def test_every_failure_is_its_own(right: tuple[np.ndarray, np.ndarray]) -> None:
    x, scores, kinds = _spoilt(right)
    rows = sx.estimate_many(lambda x: x**2, sx.Batch(x, scores))
    assert {i: str(rows.status[i]) for i in np.flatnonzero(~rows.ok)} == kinds
    good = rows.ok
    whole = sx.estimate_many(lambda x: x**2, sx.Batch(*right))
    np.testing.assert_allclose(rows.value[good], whole.value[good], rtol=1e-12)
    assert np.isnan(rows.value[~good]).all()
    assert np.isnan(rows.mcse[~good]).all()
    assert all(rows.reason[i] for i in kinds)
    assert not any(rows.reason[good])
    assert "wrong sign" in rows.reason[4]


def test_a_warning_keeps_the_numbers(right: tuple[np.ndarray, np.ndarray]) -> None:
    x, scores = right[0], right[1].copy()
    scores[4] *= 2
    rows = sx.estimate_many("x", sx.Batch(x, scores), audit="warn")
    assert rows.status[4] == "tempered"
    assert np.isfinite(rows.value).all()
    unadjusted = sx.estimate_many("x", sx.Batch(x, scores), audit="unadjusted")
    assert unadjusted.ok.all()
    np.testing.assert_array_equal(unadjusted.value, rows.value)
    off = sx.estimate_many("x", sx.Batch(x, scores), audit="off")
    np.testing.assert_array_equal(off.value, rows.value)


def test_chains_that_are_not_in_order_are_refused_of_an_unadjusted_sampler(
    right: tuple[np.ndarray, np.ndarray],
) -> None:
    x, scores = (array.copy() for array in right)
    x[3, 1], scores[3, 1] = x[3, 0], scores[3, 0]
    rows = sx.estimate_many("x", sx.Batch(x, scores), audit="unadjusted")
    assert rows.status[3] == "duplicate"
    assert np.isnan(rows.value[3]).all()


def test_chains_that_stand_still(right: tuple[np.ndarray, np.ndarray]) -> None:
    """One stays for 98 steps of 99 and then jumps, another moves by next to nothing.

    Their scores are noise so large that no identity fails: only the draws tell.
    """
    x, scores = (array.copy() for array in right)
    scores[3, 1], scores[5, 2] = 30 * x[0, 0], 30 * x[1, 0]
    x[3, 1, :99], x[3, 1, 99] = 1.0, 2.0
    x[5, 2] = 1.0 + 1e-4 * x[5, 2]
    rows = sx.estimate_many(x[..., :1], sx.Batch(x, scores))
    assert {i: str(rows.status[i]) for i in np.flatnonzero(~rows.ok)} == {3: "stuck", 5: "stuck"}
    assert np.isnan(rows.value[[3, 5]]).all()


def test_divergences(right: tuple[np.ndarray, np.ndarray]) -> None:
    diverging = np.zeros(right[0].shape[:3], dtype=bool)
    diverging[5, :, :20] = True
    diverging[6, :, :5] = True
    rows = sx.estimate_many("x", sx.Batch(*right, diverging=diverging))
    assert np.flatnonzero(~rows.ok).tolist() == [5]
    assert rows.status[5] == "divergences"


def test_integrands_that_fail_on_some(right: tuple[np.ndarray, np.ndarray]) -> None:
    x, scores = right[0].copy(), right[1].copy()
    x[7] += 1e3
    rows = sx.estimate_many(lambda x: np.exp(np.asarray(x)), sx.Batch(x[5:9], scores[5:9]))
    assert rows.status.tolist() == ["ok", "ok", "integrands", "ok"]
    assert "not finite" in rows.reason[2]
    values = right[0].copy()
    values[3, 0, 0, 0] = np.nan
    rows = sx.estimate_many(values, sx.Batch(*right))
    assert np.flatnonzero(~rows.ok).tolist() == [3]


def test_all_may_fail(right: tuple[np.ndarray, np.ndarray]) -> None:
    rows = sx.estimate_many("x", sx.Batch(right[0] * np.nan, right[1]))
    assert len(rows) == COUNT
    assert set(rows.status) == {"not finite"}


def _broken(x):
    raise ZeroDivisionError("by nothing")


def test_integrands_that_fail_for_every_posterior_are_refused(
    right: tuple[np.ndarray, np.ndarray],
) -> None:
    batch = sx.Batch(*right)
    with pytest.raises(ValueError, match="no such name"):
        sx.estimate_many("no such name", batch)
    with pytest.raises(ZeroDivisionError, match="by nothing"):
        sx.estimate_many(_broken, batch)
    with pytest.raises(ValueError, match="no such name"):
        sx.estimate_many("no such name", [sx.Sample(x, -x) for x in right[0][:3]])


def test_pieces_shrink_with_the_number_of_integrands(right: tuple[np.ndarray, np.ndarray]) -> None:
    batch = sx.Batch(*right)
    few = BatchPieces("x", batch)
    many = BatchPieces(lambda x: x[0] * jnp.ones(10_000), batch)
    assert len(few) == 1
    assert len(many) == COUNT  # 32 MB of integrands each, and 64 are allowed


@pytest.mark.parametrize(
    ("draws", "scores", "diverging"),
    [
        ((2, 4, 9), (2, 4, 9), None),
        ((2, 4, 9, 1), (2, 4, 9, 2), None),
        ((2, 4, 9, 1),) * 2 + ((2, 9),),
    ],
)
def test_a_batch_has_one_shape(draws: tuple, scores: tuple, diverging: tuple | None) -> None:
    flags = None if diverging is None else np.zeros(diverging, dtype=bool)
    with pytest.raises(ValueError, match=r"\(posterior, chain, draw"):
        sx.Batch(np.zeros(draws), np.zeros(scores), diverging=flags)
