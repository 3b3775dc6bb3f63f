"""What the pictures of fits, audits, candidates and convergence draw."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import optax
import pytest
import xarray

import steinax as sx
import targets
from steinax import plots
from steinax.plots._diagnostics import MISTAKES

SAMPLE = targets.banana(2).sample(0, chains=4, length=100)
F = {"height": lambda x: x[1], "wave": lambda x: x[0] ** 3}


class TestRest:
    def test_of_a_control_variate(self) -> None:
        g = sx.fit(F, SAMPLE, sx.Polynomial(2))
        left, right = plots.plot_residuals(F, SAMPLE, g, name="wave")
        values = SAMPLE.x[:, 0] ** 3
        rest = values - g(SAMPLE.x, SAMPLE.score)[:, 1]
        np.testing.assert_allclose(left.lines[0].get_ydata(), values)
        np.testing.assert_allclose(right.lines[0].get_ydata(), rest - rest.mean(), atol=1e-12)
        np.testing.assert_allclose(left.lines[0].get_xdata(), values - rest + rest.mean())
        assert left.get_ylabel() == "wave"
        assert f"{values.var():.3g}" in left.get_title()
        assert f"{rest.var():.3g}" in right.get_title()

    def test_a_family_is_fitted_to_the_other_half(self) -> None:
        left, right = plots.plot_residuals(F, SAMPLE, sx.Polynomial(2))
        np.testing.assert_allclose(left.lines[0].get_ydata(), SAMPLE.draws[:, 50:, 1].ravel())
        half = sx.Sample(SAMPLE.draws[:, :50], SAMPLE.scores[:, :50])
        g = sx.fit({"height": F["height"]}, half, sx.Polynomial(2))
        rest = SAMPLE.draws[:, 50:, 1] - g(SAMPLE.draws[:, 50:], SAMPLE.scores[:, 50:])[..., 0]
        np.testing.assert_allclose(right.lines[0].get_ydata(), (rest - rest.mean()).ravel())

    def test_two_axes_in_two_axes_out(self) -> None:
        _, axes = plt.subplots(2, 1)
        made = plots.plot_residuals(F, SAMPLE, sx.Polynomial(1), ax=axes)
        assert list(made) == list(axes)
        with pytest.raises(TypeError, match="two panels"):
            plots.plot_residuals(F, SAMPLE, sx.Polynomial(1), ax=axes[0])

    def test_mistakes_are_named(self) -> None:
        g = sx.fit("x", SAMPLE, sx.Polynomial(1))
        with pytest.raises(ValueError, match="give the integrands it was fitted to"):
            plots.plot_residuals(F, SAMPLE, g)
        with pytest.raises(ValueError, match="choose among height, wave"):
            plots.plot_residuals(F, SAMPLE, g, name="depth")
        with pytest.raises(TypeError):
            plots.plot_residuals(F, SAMPLE, "Polynomial(2)")


def _matrix(ax) -> np.ndarray:
    return np.asarray(ax.images[0].get_array())


class TestAudit:
    rng = np.random.default_rng(3)

    def _sample(self, dim: int) -> sx.Sample:
        x = self.rng.normal(size=(4, 250, dim))
        return sx.Sample(x, -x)

    def test_right_scores(self) -> None:
        """No cell beyond the limit: refused once in 50,000 audits by design."""
        sample = self._sample(3)
        ax = plots.plot_audit(sample)
        assert _matrix(ax).shape == (4, 3)
        assert np.all(np.abs(_matrix(ax)) <= 1)
        assert ax.get_title() == "audit passed"
        assert not ax.patches
        assert [t.get_text() for t in ax.get_yticklabels()] == [
            "1 (mean score)",
            "x[0]",
            "x[1]",
            "x[2]",
        ]

    def test_numbers_are_standard_errors(self) -> None:
        sample = self._sample(2)
        ax = plots.plot_audit(sample)
        y = (sample.x - sample.x.mean(axis=0)) / sample.x.std(axis=0, ddof=1)
        s = sample.score * sample.x.std(axis=0, ddof=1)
        mean = np.r_[s.mean(axis=0), (y.T @ s / sample.size + np.eye(2)).ravel()]
        shown = np.array([float(text.get_text()) for text in ax.texts])
        # draws are independent: the sign is that of the mean, and the size moderate
        clear = np.abs(shown) >= 0.1
        assert np.all(np.sign(shown[clear]) == np.sign(mean[clear]))
        assert np.all(np.abs(shown) < 5)

    def test_swapped_columns_show_beside_the_diagonal(self) -> None:
        sample = self._sample(4)
        wrong = sx.Sample(sample.draws, sample.scores[..., [0, 2, 1, 3]])
        ax = plots.plot_audit(wrong)
        failing = np.argwhere(np.abs(_matrix(ax)) > 1).tolist()
        assert failing == [[2, 1], [2, 2], [3, 1], [3, 2]]  # the first row is of mean scores
        assert len(ax.patches) == 4
        title = ax.get_title().split("\n")
        assert " ".join(title[:-1]) == "audit failed: columns in another order (x[1], x[2])"
        assert title[-1] == "see sx.audit(sample)"

    def test_what_failed_is_said_in_words(self) -> None:
        sample = self._sample(3)
        unknown = sample.scores + [0.9, 0, 0] * np.sin(2 * sample.draws[..., [1, 1, 1]])
        titles = {
            "sign": plots.plot_audit(sx.Sample(sample.draws, -sample.scores)).get_title(),
            "scores": plots.plot_audit(sx.Sample(sample.draws, unknown)).get_title(),
        }
        assert titles == {
            "sign": "audit failed: wrong sign\nsee sx.audit(sample)",
            "scores": "audit failed: wrong scores\nsee sx.audit(sample)",
        }

    def test_every_failure_of_scores_or_chains_has_words(self) -> None:
        """Those in the table of the guide, but not of what this plot does not compare or draw."""
        guide = Path(__file__).parents[2] / "docs" / "guides" / "audit.md"
        rows = re.findall(
            r"^\| (`\w+`.*?) \|.*\| (.*?) \|$", guide.read_text("utf-8"), re.MULTILINE
        )
        fatal = {kind for kinds, when in rows if when != "no" for kind in re.findall(r"\w+", kinds)}
        assert fatal - set(MISTAKES) == {"differences", "contradiction", "constant", "repeated"}

    def test_a_frame_is_visible_on_any_colour(self) -> None:
        """A light line around a dark one."""
        sample = self._sample(2)
        ax = plots.plot_audit(sx.Sample(sample.draws, -sample.scores))
        for frame in ax.patches:
            (stroke,) = frame.get_path_effects()
            assert stroke._gc["foreground"] == "white"
            assert stroke._gc["linewidth"] > frame.get_linewidth() + 2
            assert np.mean(frame.get_edgecolor()[:3]) < 0.2

    def test_many_dimensions_show_the_worst(self) -> None:
        sample = self._sample(40)
        scores = sample.scores.copy()
        scores[..., [5, 31]] *= -1
        ax = plots.plot_audit(sx.Sample(sample.draws, scores))
        labels = [text.get_text() for text in ax.get_xticklabels()]
        assert len(labels) == 20 and {"x[5]", "x[31]"} <= set(labels)
        assert "20 of 40 dimensions" in ax.get_title()
        assert not ax.texts, "no numbers in small cells"
        chosen = plots.plot_audit(sample, names=["x[7]", "x[2]"])
        assert [t.get_text() for t in chosen.get_xticklabels()] == ["x[7]", "x[2]"]

    def test_variables_have_their_labels(self) -> None:
        x = self._sample(3).draws
        z = xarray.DataArray(x[..., :2], dims=("chain", "draw", "city"))
        variables = xarray.Dataset({"z": z.assign_coords(city=["Oslo", "Rome"]), "tau": z[..., 0]})
        sample = sx.Sample(x, -x, names=["z[0]", "z[1]", "tau"], variables=variables)
        shown = plots.plot_audit(sample).get_xticklabels()
        assert [text.get_text() for text in shown] == ["z[Oslo]", "z[Rome]", "tau"]
        for name in ("z[Rome]", "z[1]"):
            (label,) = plots.plot_audit(sample, names=[name]).get_xticklabels()
            assert label.get_text() == "z[Rome]"

    def test_one_dimension_and_axes_out(self) -> None:
        _, ax = plt.subplots()
        assert plots.plot_audit(self._sample(1), ax=ax) is ax
        assert _matrix(ax).shape == (2, 1)

    def test_mistakes_are_named(self) -> None:
        x = self.rng.normal(size=(4, 250, 2))
        x[..., 1] = 1.0
        with pytest.raises(ValueError, match="leave constants out"):
            plots.plot_audit(sx.Sample(x, -x))
        with pytest.raises(ValueError, match=r"choose among x\[0\]"):
            plots.plot_audit(self._sample(2), names=["mu"])


class TestTraining:
    def test_all_rates_are_drawn(self) -> None:
        g = sx.fit("x", SAMPLE, sx.Network(4, 1), solver=sx.Stochastic(epochs=4))
        upper, lower = plots.plot_training(g)
        assert g.training is not None and g.training.rates is not None
        assert g.training.losses.shape == g.training.rates.shape == (3, 4)
        kept = int(g.training.chosen)
        assert f"rate of {g.training.rates[kept, 0]:.2g}" in g.note
        curves = {line.get_label(): line.get_ydata() for line in upper.lines}
        label = f"rate {g.training.rates[kept, 0]:.2g}, kept"
        np.testing.assert_array_equal(curves[label], g.training.losses[kept])
        thick = max(upper.lines, key=lambda line: line.get_linewidth() * len(line.get_xdata()))
        assert thick.get_color() == plots.CONTROLLED and thick.get_label() == label
        assert len(lower.lines) == 3
        assert np.all(np.diff(lower.lines[0].get_ydata()) < 0), "rates fall"

    def test_history_is_the_best_so_far(self) -> None:
        g = sx.fit("x", SAMPLE, sx.Network(4, 1), solver=sx.Stochastic(epochs=4))
        own = np.fmin.accumulate(g.training.losses[int(g.training.chosen)])
        assert np.all(g.history <= own + 1e-15)

    def test_a_given_optimiser_has_its_own_rate(self) -> None:
        solver = sx.Stochastic(optax.adam(1e-2), epochs=3, precondition=False)
        g = sx.fit("x", SAMPLE, sx.Polynomial(1), solver=solver)
        upper, lower = plots.plot_training(g)
        assert upper.lines[0].get_label() == "the given optimiser"
        assert not lower.lines and lower.texts

    def test_it_is_saved_and_loaded(self, tmp_path) -> None:
        g = sx.fit("x", SAMPLE, sx.Network(4, 1), solver=sx.Stochastic(epochs=2))
        g.save(tmp_path / "g.npz")
        loaded = sx.ControlVariate.load(tmp_path / "g.npz")
        np.testing.assert_array_equal(loaded.training.losses, g.training.losses)

    def test_an_exact_fit_has_no_curve(self) -> None:
        with pytest.raises(ValueError, match="fit a Network"):
            plots.plot_training(sx.fit("x", SAMPLE, sx.Polynomial(1)))
        with pytest.raises(TypeError):
            plots.plot_training(SAMPLE)


@pytest.fixture(scope="module")
def estimate() -> sx.Estimate:
    return sx.estimate(F, targets.banana(2).sample(0, chains=2, length=60))


class TestCandidates:
    def test_dots_means_and_weights(self, estimate) -> None:
        tried = estimate.candidates
        ax = plots.plot_candidates(estimate, most=1000)
        lines = {line.get_label(): line for line in ax.lines}
        pale, dark = lines["an integrand"], lines["used for it"]
        drawn = np.r_[pale.get_xdata(), dark.get_xdata()]
        np.testing.assert_allclose(np.sort(drawn), np.sort(tried.left.ravel()))
        assert len(dark.get_xdata()) == (tried.mixture >= 0.05).sum()
        assert dark.get_color() == plots.CONTROLLED
        mean = lines["their mean"].get_xdata()
        assert np.all(np.diff(mean) >= 0), "the best on top"
        assert ax.get_xscale() == "log"
        assert len(ax.get_yticklabels()) == len(tried.names)

    def test_plain_is_always_there(self, estimate) -> None:
        ax = plots.plot_candidates(estimate, most=4)
        labels = [text.get_text() for text in ax.get_yticklabels()]
        assert len(labels) == 4 and "plain Monte Carlo" in labels
        assert "more were tried" in ax.get_xlabel()

    def test_of_one_integrand(self, estimate) -> None:
        ax = plots.plot_candidates(estimate["wave"])
        dark = next(line for line in ax.lines if line.get_label() == "used for it")
        assert len(dark.get_xdata()) == (estimate["wave"].candidates.mixture >= 0.05).sum()

    def test_without_candidates(self) -> None:
        with pytest.raises(ValueError, match="leave the family out"):
            plots.plot_candidates(sx.estimate(F, SAMPLE, sx.Polynomial(1)))


class TestConvergence:
    def test_each_size_is_estimated_from_the_first_draws(self) -> None:
        left, right = plots.plot_convergence(
            F, SAMPLE, sx.Polynomial(2), sizes=[200, 400], truth=0.5
        )
        part = sx.Sample(SAMPLE.draws[:, :50], SAMPLE.scores[:, :50])
        expected = sx.estimate({"height": F["height"]}, part, sx.Polynomial(2))
        curves = {line.get_label(): line.get_ydata() for line in right.lines}
        np.testing.assert_allclose(curves["plain"][0], expected.plain_mcse[0])
        np.testing.assert_allclose(curves["controlled"][0], expected.mcse[0])
        made = np.abs(expected.plain_value[0] - 0.5)
        np.testing.assert_allclose(curves["actual error, plain"][0], made)
        np.testing.assert_allclose(left.lines[0].get_ydata()[0], expected.plain_value[0])
        ends = left.collections[0].get_segments()[0][:, 1]
        np.testing.assert_allclose(ends, expected.plain_interval()[0])
        assert left.get_xticks().tolist() == [200, 400]
        assert left.get_xscale() == right.get_yscale() == "log"

    def test_sizes_are_halves_by_default(self) -> None:
        sample = targets.banana(2).sample(0, chains=4, length=64)
        left, _ = plots.plot_convergence("x", sample, sx.Polynomial(1), name="x[1]")
        assert left.get_xticks().tolist() == [64, 128, 256]
        assert left.get_ylabel().startswith("x[1]")

    def test_wrong_scores_are_refused(self) -> None:
        wrong = sx.Sample(SAMPLE.draws, -SAMPLE.scores)
        with pytest.raises(sx.AuditError):
            plots.plot_convergence("x", wrong, sx.Polynomial(1))

    @pytest.mark.parametrize("sizes", [[], [8], [401 * 4]])
    def test_sizes_that_cannot_be(self, sizes) -> None:
        with pytest.raises(ValueError, match="from 16 to 400"):
            plots.plot_convergence("x", SAMPLE, sx.Polynomial(1), sizes=sizes)
