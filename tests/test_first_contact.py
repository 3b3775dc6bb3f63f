"""What people type who have never read the documentation: it works, or says what to do next."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import xarray
from scipy import stats

import steinax as sx
from steinax._show import digits
from steinax.cli import main

X = np.random.default_rng(0).normal(size=(4, 100, 2))
SAMPLE = sx.Sample(X, -X)


def frame(columns: list[str]) -> pandas.DataFrame:
    return pandas.DataFrame({name: X[0, :, "ab".index(name)] for name in columns})


class TestDraws:
    def test_a_data_frame_names_the_columns(self) -> None:
        assert sx.Sample(frame(["a", "b"]), -frame(["a", "b"])).names == ("a", "b")

    def test_columns_in_another_order_are_refused(self) -> None:
        with pytest.raises(ValueError, match="draws are a, b and those of the scores b, a: give"):
            sx.Sample(frame(["a", "b"]), -frame(["b", "a"]))

    def test_names_of_axes_say_which_is_which(self) -> None:
        draws = xarray.DataArray(
            X, dims=("chain", "draw", "what"), coords={"what": ["mu", "tau"]}
        ).transpose("draw", "chain", "what")
        sample = sx.Sample(draws, -draws)
        assert sample.names == ("mu", "tau")
        np.testing.assert_array_equal(sample.draws, X)

    def test_chains_of_one_dimension_lack_an_axis(self) -> None:
        with pytest.raises(ValueError, match=r"add an axis: draws\[\.\.\., None\]"):
            sx.estimate("x", sx.Sample(X[:, :, 0], -X[:, :, 0]))

    def test_swapped_axes_are_a_remark(self) -> None:
        swapped = X.swapaxes(0, 1)
        assert "draws.swapaxes(0, 1)" in repr(sx.audit(sx.Sample(swapped, -swapped)))

    def test_one_draw(self) -> None:
        with pytest.raises(ValueError, match="one draw has no spread"):
            sx.estimate("x", sx.Sample(X[:1, :1], -X[:1, :1]))


MISTAKES = {
    "sx.predictive(1.0, sample)": "such as lambda mu, sigma: stats.norm(mu, sigma)",
    "sx.Sample(x)": "from_logdensity(log_density, draws)",
    "sx.Sample(x, None)": "from_logdensity(log_density, draws)",
    'sx.Sample({"mu": x}, {"mu": x})': "draws are a dict: give one array",
    "sx.estimate(sample)": "estimate(f, sample)",
    'sx.estimate(sample, "x")': "estimate(f, sample)",
    'sx.estimate("x", xarray.DataTree())': "of type DataTree: give a Sample",
    'sx.estimate("x", x)': "of type ndarray: give a Sample(draws, scores)",
    "sx.estimate([lambda x: x[0], lambda x: x[1]], sample)": "give them in a dict",
    'sx.estimate("x", sample, sx.Polynomial)': "class Polynomial: give one such as Polynomial(2)",
    'sx.estimate("x", sample, sx.Polynomial(1), split=5)': "split=CrossFit(5)",
    'sx.estimate("x", sample, sx.Polynomial(1), solver="exact")': "solver=Exact()",
    'sx.estimate("x", sample, sx.Polynomial(1), penalty=0.1)': "Ridge(0.1)",
    'sx.save(sample, "draws.nc")': "save(path, sample)",
    "sx.from_logdensity(x, lambda x: x)": "from_logdensity(fn, draws)",
    "sx.summary(x)": "Sample(draws, scores)",
    "sx.from_nutpi": "has no attribute 'from_nutpi'",
    'sx.load("draws.nc")': "steinax.from_arviz(path) reads what steinax.save wrote",
    "sx.from_nutpie(1, 2)": "from_nutpie: too many positional arguments. Give the trace alone",
    "sx.evidence(abs, abs, x, [0, 1])": "Tempered.from_logdensity(log_likelihood, log_prior, draws",
    'sx.plot_residuals("x", sample)': "plot_residuals('mu', sample, sx.Polynomial(2))",
    'sx.plot_estimate("x", sample)': "plot_estimate(sx.estimate('mu', sample))",
    'sx.plot_worth("x", sample)': "plot_worth(sx.estimate('mu', sample))",
    "sample.sel(chain=0)": "sample.isel(chain=0)",
    'est.derived("x[0] / x[1]")': "such as lambda mu, sd: mu / sd",
    "est.derived(lambda m: m.mu)": "write m['mu']",
    "float(est)": "float(estimate['x[0]'])",
    "new.lppd(sample)": "the data are of type Sample: give the observed numbers",
    "est.interval([0.5, 0.9])": "one number such as 0.95",
    'sx.ControlVariate.load("absent")': "there is no file absent: check the path",
    'sx.cross_validate("x", sample, {"a": sx.Polynomial(1)})': "give the families as a list",
    "new.probability(1.0)": "probability(above=0)",
    "new.probability(above=2, below=1)": "use 1 - probability(above=1, below=2).value",
    "new.probability(above=[0, 1], below=1)": "above=1 is not less than below=1, and no number",
    "sx.predictive(lambda x: x[0], sample)": "let it give the conditional distribution",
    "sx.predictive(lambda x: None, sample)": "gives nothing: let it give the conditional",
    "sx.predictive(sample, lambda x: stats.norm(x[0], 1))": "stats.norm(mu, sigma), and then the sample",
    "sx.estimate(lambda cut: cut.sel(at='low'), ordered)": "gets the variable cut, an array without labels",
    "sx.estimate(lambda cut: cut['low'], ordered)": "gets the variable cut, an array without labels",
    "sx.estimate({'g': lambda cut: cut[7]}, ordered)": "the integrand 'g', a function of cut of shape (3,), "
    "takes index 7, out of bounds for an axis of length 3: positions count from 0, so use 0 to 2.",
    'sx.estimate("cut > 1", ordered)': 'a function: {"p": lambda cut: cut > 1}. Use one of these',
    'sx.estimate("log(slope)/cut[0]", ordered)': '{"f": lambda slope, cut: jnp.log(slope)/cut[0]}',
    'sx.estimate("slop", ordered)': "the sample has cut, slope, x. Did you mean 'slope'? Use one",
    'sx.estimate("Slope", ordered)': "Did you mean 'slope'?",
    'sx.estimate("nothing", ordered)': "the sample has cut, slope, x. Use one of these",
    'sx.estimate({"g": lambda slop: slop}, ordered)': "the integrand 'g' is a function of slop, but the "
    "sample has no slop: it has cut, slope, x. Did you mean 'slope'? Name",
    'est["xx"]': "no integrand is called 'xx': there are x. Did you mean 'x'? Use one of these.",
    'many["rate[20]"]': "called 'rate[20]': there are rate[0], rate[1],",
    'many["slop"]': "called 'slop': there are rate, tau, slope. Did you mean 'slope'? Use one",
    'many.derived(lambda m: m["slop"])': "there are rate, tau, slope. Did you mean 'slope'? Use",
    "many.derived(lambda tau, slop: tau / slop)": "there are rate, tau, slope. Did you mean 'slope'?",
    'sx.weigh("x", sample)': "the sample comes first: weigh(sample)",
    'sx.summary("x", sample)': "the sample comes first, and then the names: summary(sample, ['mu',",
    'weighted.quantile([0.05, 0.95], "x")': "come first, and then the numbers: quantile('mu', [0.05",
    'weighted.hdi(0.9, "x")': "come first, and then the numbers: hdi('mu', 0.9)",
    'weighted.density([0.0, 1.0], "x")': "come first, and then the numbers: density('mu', [0.0",
    "sx.summary(sample, ci_prob=95)": "ci_prob=95: give the probability that an interval covers, one",
    'sx.summary(sample, var_names=["xx"])': "no variable is called xx: there are x. Did you mean 'x'?",
    'sx.estimate_many(sx.Batch(x[None], -x[None]), "x")': "first, and then the posteriors",
    'sx.estimate_many([sample], "x")': "first, and then the posteriors: estimate_many(f, samples)",
    'sx.estimate_many("x", sample)': "of type Sample: give a list of samples, or use estimate(f, sample)",
    'sx.estimate_many("x", x)': "of type ndarray: give a Batch(draws, scores)",
    'sx.estimate_many("x", "a.nc")': "of type str: give a list of paths, ['a.nc']",
    'sx.estimate_many("x", (s for s in [sample]))': "of type generator: give a Batch, or a list",
    'sx.KernelTranslates("matern")': "kernel is 'matern': give one such as steinax.kernels.Matern52()",
    "sx.KernelTranslates(sx.kernels.Matern52)": "kernel is the class Matern52: give one such as",
    "sx.KernelTranslates(sx.kernels.Matern52(), 100)": "centres is 100: give one such as Landmarks(100)",
    'sx.Polynomial("2")': "Polynomial('2'): the degree must be 1 or more, and whole: give one such as",
    'sx.Network("relu")': "The activation is a function, Network(activation=jax.nn.relu)",
    'sx.Network(activation="relu")': "'relu' is not a function: give one, such as jax.nn.relu",
    'sx.evidence(tempered, method="ti")': "method='ti' is not a method: give one of steinax.tempering",
    "sx.from_numpyro(lambda y: y, {})": "give those it was run with as model_args=(...) and model_kwargs",
    "sx.estimate(lambda d: d.a, labelled)": "write m['a'], or give the function an argument called a",
    'sx.audit(sample, log_density=lambda x: x["mu"])': 'log_density({"mu": x[0]',
}
SCRIPT = """
import json, sys
import numpy as np, steinax as sx, xarray
from scipy import stats

x = np.random.default_rng(0).normal(size=(4, 100, 2))
sample = sx.Sample(x, -x)
labelled = sx.Sample(x, -x, names=["a", "b"])
variables = {"cut": x[..., [0, 0, 0]], "slope": x[..., 1]}
ordered = sx.from_arrays(x, -x, variables=variables)
est = sx.estimate("x", sample, sx.Polynomial(1))
of_vector = {"rate": np.repeat(x, 6, axis=-1), "tau": x[..., 0], "slope": x[..., 1]}
many = sx.estimate(of_vector, sample, sx.Polynomial(1))
weighted = sx.weigh(sample, sx.Polynomial(1))
tempered = sx.Tempered(x, -x[..., 0] ** 2, -x, -x, np.linspace(0, 1, 4))
new = sx.predictive(lambda x: stats.norm(x[0], 1), sample)
told = {}
for typed in json.load(sys.stdin):
    try:
        told[typed] = f"no error, but {eval(typed)}"
    except Exception as error:
        told[typed] = str(error)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What each mistake raises, in a process of its own: the types are not checked there."""
    typed = json.dumps(list(MISTAKES))
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=typed, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_says_what_to_do(typed: str, told: dict[str, str]) -> None:
    assert MISTAKES[typed] in told[typed]


WARNED = """import numpy as np, steinax as sx
x = np.random.default_rng(0).normal(size=(4, 100, 2))
sample = sx.Sample(x, x)
sx.estimate("x", sample, sx.Polynomial(1), audit="warn")
"""


def test_a_warning_points_at_the_line_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(WARNED)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert f"{script}:4: AuditWarning: audit failed:" in run.stderr


def test_csv_files_are_cmdstans(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("lp__\n")
    for path in (tmp_path, tmp_path / "out.csv"):
        with pytest.raises(ValueError, match=r"from_cmdstan\(path\)"):
            sx.summary(path)


def test_an_npz_file_is_no_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    control = sx.fit("x", SAMPLE, sx.Polynomial(1))
    assert control.note == "solved exactly: 2 coefficients, 400 draws"
    control.save(tmp_path / "g.npz")
    assert main(["audit", str(tmp_path / "g.npz")]) == 2
    told = capsys.readouterr().err
    assert "g.npz seems to be an npz file of arrays, such as a saved control variate" in told
    assert "give the netCDF file, the zarr store or the CSV files" in told


class TestFunctions:
    def test_an_index_out_of_range_is_an_error(self) -> None:
        """By default jax takes the last element, in silence."""
        with pytest.raises(IndexError, match="out of bounds"):
            sx.estimate(lambda x: jnp.sin(x[2]), SAMPLE)

    def test_an_error_says_what_the_function_was_given(self) -> None:
        with pytest.raises(IndexError) as caught:
            sx.estimate(lambda x: x[:, 0], SAMPLE)
        assert "one draw at a time: of x of shape (2,)" in caught.value.__notes__[-1]

    def test_an_unknown_name_is_printed_without_quotes(self) -> None:
        with pytest.raises(KeyError) as caught:
            sx.summary(SAMPLE, var_names=["tauu"])
        assert str(caught.value).startswith("no variable is called tauu: there are x. Use some")

    def test_a_name_with_a_typing_error(self) -> None:
        sample = sx.Sample(X, -X, names=["mu", "log_tau"])
        with pytest.raises(ValueError, match="no log_tua: it has mu, log_tau"):
            sx.estimate(lambda log_tua: log_tua, sample)

    def test_where_it_is_not_finite(self) -> None:
        value = X[..., 0].copy()
        value[1, 7] = np.nan
        with pytest.raises(ValueError, match="infinite on 1, the first of them draw 7 of chain 1"):
            sx.estimate(value, SAMPLE)


class TestDataOfAFloat32Model:
    """jax 0.12 takes an array for float32 for good once a compiled loop has read it so."""

    SCALE = np.array([3.0, 4.0])

    def log_density(self, x: jax.Array) -> jax.Array:
        return -jnp.sum((x / self.SCALE) ** 2) / 2

    @pytest.fixture
    def used(self) -> np.ndarray:
        def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            return x + jax.grad(self.log_density)(x), None

        with jax.enable_x64(False):
            jax.jit(lambda x: jax.lax.scan(step, x, None, length=3)[0])(jnp.zeros(2))
        return self.SCALE

    def test_scores(self, used: np.ndarray) -> None:
        sample = sx.from_logdensity(self.log_density, X)
        np.testing.assert_allclose(sample.scores, -X / used**2, rtol=1e-6)

    def test_integrands(self, used: np.ndarray) -> None:
        found = sx.estimate(lambda x: used * x, SAMPLE)
        np.testing.assert_allclose(found.plain_value, used * X.mean(axis=(0, 1)), rtol=1e-5)


class TestEstimates:
    EST = sx.estimate(lambda x: x**3 + x, SAMPLE)

    @pytest.mark.parametrize(
        ("name", "advice"),
        [("mean", r"\.value"), ("std", r"\.mcse"), ("ci", r"interval"), ("quantile", "weigh")],
    )
    def test_what_is_called_otherwise(self, name: str, advice: str) -> None:
        with pytest.raises(AttributeError, match=advice):
            getattr(self.EST, name)

    def test_one_is_a_number(self) -> None:
        assert float(self.EST["f[1]"]) == self.EST.value[1]

    def test_by_place_and_in_a_loop(self) -> None:
        assert self.EST[0].names == ("f[0]",)
        assert [one.names for one in self.EST] == [("f[0]",), ("f[1]",)]

    @pytest.mark.parametrize("width", [30, 50, 80])
    def test_it_fits_the_terminal(self, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        lines = repr(self.EST).split("\n")
        assert max(map(len, lines)) <= width
        assert ("no room for" in repr(self.EST)) == (width < 60)

    def test_what_is_exact_is_not_written_out(self) -> None:
        exact = sx.estimate("x", SAMPLE)
        assert ">1e9" in repr(exact)
        assert max(len(cell) for cell in repr(exact).split("\n")[1].split()) <= 14

    def test_a_small_value_is_a_power_of_ten(self) -> None:
        assert digits(2.4387e-10, 3.1e-12) == "2.439e-10"
        assert digits(-9.94e-5, 1e-6) == "-9.94e-05"
        assert digits(1.2e-7, 0.01) == digits(0.0, 0.01) == "0.000"

    def test_the_mean_of_a_probability_exists(self) -> None:
        """That of a rare event has a tail as heavy as those without a mean, and is bounded."""
        new = sx.predictive(lambda x: stats.norm(x[0], 1), SAMPLE)
        rare = new.probability(above=7)
        inside = sx.estimate(lambda x: jax.scipy.stats.norm.sf(7 - x[0]), SAMPLE)
        assert inside.heavy and not rare.heavy
        assert "may not exist" not in repr(rare)
        value = repr(rare).split("\n")[1].split()[3]
        assert "e-" in value and len(value) < 10

    def test_the_control_variates_of_several_integrands(self) -> None:
        """Those of each are listed elsewhere, and there may be more mixtures than candidates."""
        est = sx.estimate(lambda x: x[0] ** jnp.arange(1, 4), SAMPLE)
        differ = replace(est, chosen=("one", "two", "one"))
        lines = repr(differ).split("\n")
        assert lines[4] == "control variates differ by integrand: see .chosen and .candidates"
        assert lines[5].startswith("chosen among")
        total = replace(est, chosen=("one", "two", "three")).derived(lambda mean: mean["f"].sum())
        assert total.chosen == ("from 3 combinations of control variates",)

    def test_one_chain_has_no_rhat(self) -> None:
        one = sx.estimate(lambda x: x**3, sx.Sample(X[0], -X[0]))
        assert repr(one).split("\n")[1].endswith(" -")
