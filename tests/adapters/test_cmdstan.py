"""CmdStan's own files: non-centred eight schools, 4 chains of 500 draws, and copies of them changed."""

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arviz_stats.loo import loo

import steinax as sx
from adapters.eight_schools import (
    Change,
    Run,
    columns,
    cut,
    log_density,
    means,
    replace,
    score,
    without_rows,
    written,
)
from adapters.settled import same_draws, training_of
from steinax.adapters import NoDrawsError
from steinax.checks import check_adapter

NAMES = ("mu", "tau_free__", *(f"theta_tilde[{i}]" for i in range(8)))


@pytest.fixture(scope="module")
def files(data_dir: Path) -> Path:
    return data_dir / "cmdstan_eight_schools"


@pytest.fixture(scope="module")
def sample(files: Path) -> sx.Sample:
    return sx.from_cmdstan(files)


@pytest.fixture
def run(files: Path, tmp_path: Path) -> Run:
    return Run(files, tmp_path)


def same(one: sx.Sample, other: sx.Sample, draws: slice = slice(None)) -> None:
    assert one.variables is not None and other.variables is not None
    assert (one.names, one.variables.names) == (other.names, other.variables.names)
    np.testing.assert_array_equal(one.draws, other.draws[:, draws])
    np.testing.assert_array_equal(one.scores, other.scores[:, draws])
    for name in one.variables.names:
        np.testing.assert_array_equal(
            one.variables[name].values, other.variables[name].values[:, draws]
        )


def test_scores_are_the_analytic_ones_to_all_digits_written(sample: sx.Sample) -> None:
    expected = score(sample.draws)
    assert np.max(np.abs(sample.scores - expected)) < 1e-13


def test_keeps_the_contract_of_an_adapter(files: Path) -> None:
    check_adapter(
        lambda: sx.from_cmdstan(files),
        chains=4,
        length=500,
        dim=10,
        names=NAMES,
        log_density=log_density,
    )


def test_passes_the_audit_and_estimates_by_name(sample: sx.Sample) -> None:
    report = sx.audit(sample)
    assert report.passed and report.compared
    estimate = sx.estimate(["mu", "tau", "theta_tilde", "theta"], sample, sx.Polynomial(2))
    assert estimate.names[:3] == ("mu", "tau", "theta_tilde[0]")
    assert estimate.names[-1] == "theta[7]"
    assert np.all(estimate.worth > 1)
    # 4.5 standard errors, two numbers: exceeded once in 70,000 runs if error bars are right
    assert np.all(np.abs(estimate.value[:2] - means()) < 4.5 * estimate.mcse[:2])


def test_variables_are_what_arviz_reads(run: Run, sample: sx.Sample) -> None:
    import arviz_base
    import cmdstanpy

    run.write()
    fit = cmdstanpy.from_csv([str(run.folder / f"eight_{i}.csv") for i in (1, 2, 3, 4)])
    assert isinstance(fit, cmdstanpy.CmdStanMCMC)
    expected = arviz_base.from_cmdstanpy(fit)["posterior"]
    assert sample.variables is not None
    assert sample.variables.names == tuple(expected.data_vars)
    for name in sample.variables.names:
        np.testing.assert_array_equal(sample.variables[name].values, expected[name].values)
    with pytest.raises(
        ValueError, match=r"4 files hold no scores: .*eight-diagnostic_1.csv is next to"
    ):
        sx.from_cmdstan(fit)
    for path in run.folder.glob("*diagnostic*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"4 files hold no scores(.|\n)*save_latent_dynamics=True"):
        sx.from_cmdstan(fit)
    with pytest.raises(ValueError, match=r"eight_2.csv holds no scores: sample again"):
        sx.from_cmdstan(run.folder / "eight_2.csv")


def test_axes_have_names_and_labels(files: Path) -> None:
    schools = [f"school {letter}" for letter in "ABCDEFGH"]
    sample = sx.from_cmdstan(files, dims={"theta": ["school"]}, coords={"school": schools})
    assert sample.variables is not None
    assert sample.variables["theta"].dims == ("chain", "draw", "school")
    assert sample.variables["theta_tilde"].dims[-1] == "theta_tilde_dim_0"
    found = sx.data.integrands("theta", sample)
    assert found.names == tuple(f"theta[{school}]" for school in schools)
    with pytest.raises(ValueError, match="write 'theta'"):
        sx.from_cmdstan(files, dims={"thetta": ["school"]})


def test_other_files_are_no_output_of_cmdstan(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=f"no output of CmdStan in {tmp_path}: give its CSV files"):
        sx.from_cmdstan(tmp_path)
    with pytest.raises(ValueError, match=f"no output of CmdStan in {tmp_path}/notes.csv: give"):
        sx.from_cmdstan([tmp_path / "notes.csv"])


def test_reads_a_fit_of_cmdstanpy(run: Run, sample: sx.Sample) -> None:
    from cmdstanpy import CmdStanMCMC
    from cmdstanpy.cmdstan_args import CmdStanArgs, SamplerArgs
    from cmdstanpy.stanfit import RunSet

    arguments = CmdStanArgs(
        "eight",
        "eight",
        chain_ids=[1, 2, 3, 4],
        method_args=SamplerArgs(iter_sampling=500, iter_warmup=1000),
        output_dir=str(run.folder),
        save_latent_dynamics=True,
    )
    record = RunSet(arguments, chains=4, time_fmt="20261115")
    run.write(name="eight-20261115{}_{}.csv")
    assert all(Path(path).exists() for path in record.csv_files + record.diagnostic_files)
    same(sx.from_cmdstan(CmdStanMCMC(record)), sample)


@pytest.mark.parametrize("form", ["folder", "pattern", "list", "text"])
def test_files_are_given_in_many_ways(files: Path, sample: sx.Sample, form: str) -> None:
    every = sorted(files.glob("*.csv"), reverse=True)
    given = {"folder": str(files), "pattern": f"{files}/eight*.csv", "list": every}
    same(sx.from_cmdstan(given.get(form, [str(path) for path in every])), sample)


def test_one_file_may_hold_both_tables(files: Path, sample: sx.Sample) -> None:
    one = sx.from_cmdstan(files / "eight_3.csv")
    np.testing.assert_array_equal(one.draws[0], sample.draws[2])
    assert one.variables is not None and "theta" in one.variables


def test_reads_the_files_of_cmdstanr(run: Run, sample: sx.Sample) -> None:
    folder = run.write(name="eight{}-202611150046-{}-5a3b1c.csv")
    (folder / "eight-profile-202611150046-1-5a3b1c.csv").write_text("name,thread_id,total_time\n")
    same(sx.from_cmdstan(folder), sample)


def test_chains_are_found_by_their_numbers_and_not_by_file_names(
    run: Run, sample: sx.Sample
) -> None:
    run.write()
    first, second = (run.folder / f"eight_{chain}.csv" for chain in (1, 2))
    one, other = first.read_text(), second.read_text()
    first.write_text(other)
    second.write_text(one)
    same(sx.from_cmdstan(run.folder), sample)


def test_one_process_gives_all_its_chains_one_id(run: Run, sample: sx.Sample) -> None:
    same(sx.from_cmdstan(run.both(replace(id="1 (Default)", num_chains="4"))), sample)


@pytest.mark.parametrize("true", ["true", "1"])
def test_the_warm_up_is_for_training(run: Run, sample: sx.Sample, true: str) -> None:
    """The rows are draws of CmdStan, of which the settings call the first ones warm-up."""
    folder = run.both(replace(save_warmup=true, num_warmup="100", num_samples="400 (Default)"))
    found = sx.from_cmdstan(folder)
    same(found, sample, slice(100, None))
    part, rows = training_of(found, sample.draws[:, :100])
    same(part, sample, rows)
    assert np.max(np.abs(part.scores - score(part.draws))) < 1e-13
    assert part.log_density is not None and sample.log_density is not None
    np.testing.assert_array_equal(part.log_density, sample.log_density[:, rows])
    estimate = sx.estimate(["tau", "theta"], found, sx.Polynomial(2))
    assert f"{part.size} training points" in estimate.note
    same_draws(sx.from_cmdstan(folder, warmup=False), found)
    assert sample.training == ()


def test_a_warm_up_that_not_every_file_has_is_left_out(run: Run, sample: sx.Sample) -> None:
    def longer(text: str) -> str:
        """One chain with 50 rows more, which are its warm-up."""
        if "# id = 3" not in text:
            return replace(num_samples="450", save_warmup="1", num_warmup="50")(text)
        head, header, rows = text.partition(next(x for x in text.splitlines() if x[:4] == "lp__"))
        first = next(line for line in rows.splitlines() if line and line[0] not in "#l")
        more = rows.replace(first, "\n".join([first] * 11), 1)
        return replace(num_samples="450", save_warmup="1", num_warmup="60")(head + header + more)

    found = sx.from_cmdstan(run.both(longer))
    assert found.training == ()
    np.testing.assert_array_equal(found.draws, sample.draws[:, 50:])


def test_thinned_chains_have_fewer_rows(run: Run, sample: sx.Sample) -> None:
    folder = run.both(replace(save_warmup="true", thin="3", num_warmup="298", num_samples="1200"))
    found = sx.from_cmdstan(folder)
    same(found, sample, slice(100, None))
    training_of(found, sample.draws[:, :100])


def test_divergences_are_kept(run: Run) -> None:
    def diverge(text: str) -> str:
        row = text.index("\n", text.index("\nlp__") + 1)
        cells = text[row:].lstrip("\n").split(",", 6)
        if cells[0].startswith("#"):  # the draws tell of the adaptation first
            return text
        return text[:row] + "\n" + ",".join([*cells[:5], "1", cells[6]])

    diverging = sx.from_cmdstan(run.both(diverge)).diverging
    assert diverging is not None
    assert diverging[:, 0].all() and not diverging[:, 1:].any()


def test_parameters_may_be_called_as_momenta_and_gradients_are(run: Run, sample: sx.Sample) -> None:
    # Draws of x, p_x and g_x have the columns of diagnostics of x.
    names = {"mu": "x", "tau": "p_x", "theta_tilde.1": "g_x"}
    all_names = {p + old: p + new for p in ("", "p_", "g_") for old, new in names.items()}
    found = sx.from_cmdstan(run.write(columns(names), columns(all_names)))
    assert found.names == ("x", "p_x_free__", "g_x")
    np.testing.assert_array_equal(found.draws, sample.draws[..., :3])
    np.testing.assert_array_equal(found.scores, sample.scores[..., :3])


def test_matrices_tuples_and_complex_numbers(run: Run, sample: sx.Sample) -> None:
    new = ("M.1.1", "M.2.1", "M.1.2", "M.2.2", "pair:1", "pair:2.1", "z.real", "z.imag")
    chosen = {f"theta_tilde.{i + 1}": name for i, name in enumerate(new)}
    every = {p + old: p + name for p in ("", "p_", "g_") for old, name in chosen.items()}
    found = sx.from_cmdstan(run.write(columns(chosen), columns(every)))
    assert found.names[:4] == ("M[0, 0]", "M[1, 0]", "M[0, 1]", "M[1, 1]")
    assert found.names[4:] == ("pair:1", "pair:2[0]", "z.real", "z.imag")
    assert found.variables is not None
    matrix = found.variables["M"].values
    np.testing.assert_array_equal(matrix[..., 1, 0], sample.draws[..., 3])
    np.testing.assert_array_equal(matrix[..., 0, 1], sample.draws[..., 4])


def test_arrays_of_vectors_have_their_own_names(run: Run, sample: sx.Sample) -> None:
    """Stan names unconstrained elements column by column; their values are member by member."""
    stan = ("b.1.1", "b.2.1", "b.1.2", "b.2.2")
    free = {f"theta_tilde.{i + 1}": name for i, name in enumerate(stan)}
    every = {p + old: p + name for p in ("", "p_", "g_") for old, name in free.items()}
    members = {f"theta_tilde.{i + 1}": stan[j] for i, j in enumerate((0, 2, 1, 3))}
    found = sx.from_cmdstan(run.write(columns(members), columns(every)))
    assert found.names == ("b[0, 0]", "b[0, 1]", "b[1, 0]", "b[1, 1]")
    assert found.variables is not None
    np.testing.assert_array_equal(found.variables["b"].values[..., 0, 1], sample.draws[..., 3])


def test_without_draws_there_are_only_unconstrained_columns(files: Path, sample: sx.Sample) -> None:
    with pytest.warns(UserWarning, match=r"only diagnostic files.*give the files of draws"):
        found = sx.from_cmdstan(f"{files}/eight-diagnostic_*.csv")
    assert found.variables is None
    assert found.names[:3] == ("mu_free__", "tau_free__", "theta_tilde_free__[0]")
    np.testing.assert_array_equal(found.scores, sample.scores)


def test_few_digits_are_told_where_they_matter(run: Run) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sx.from_cmdstan(run.both(written(6)))
    with pytest.warns(UserWarning, match=r"with 6 digits, which blurs mu by 0.09 of.*sig_figs=16"):
        found = sx.from_cmdstan(run.both(written(6, shift=1e5)))
    assert found.names == NAMES


def damaged(row: int, change: Change) -> Change:
    """Change one row of the table."""

    def changed(text: str) -> str:
        lines = text.splitlines()
        first = next(i for i, each in enumerate(lines) if each.startswith("lp__"))
        lines[first + row] = change(lines[first + row])
        return "\n".join(lines) + "\n"

    return changed


REFUSED: dict[str, tuple[Change, Change, str]] = {
    "interrupted": (str, cut(0.5), r"complete rows, but its settings specify 500.*Let the run end"),
    "interrupted draws": (cut(0.8), str, "complete rows, but its settings specify 500"),
    "nothing yet": (without_rows, without_rows, "holds 0 complete rows"),
    "no table": (
        str,
        lambda text: text[: text.index("lp__")],
        "has no table: the run stopped before its first draw",
    ),
    "no comments": (str, lambda text: text[text.index("lp__") :], "lacks the comment.*with all"),
    "garbage": (
        str,
        damaged(60, lambda row: f"{row}\ndisk error"),
        r"line 106 of .*_1.csv is not a row of its table: 'disk error'. The file is damaged: copy it",
    ),
    "garbage in a number": (str, damaged(60, lambda row: f"{row}x"), r"line 105 of .*is damaged"),
    "empty": (str, lambda text: "", "eight-diagnostic_1.csv is empty: .*Run this chain again"),
    "no settings": (str, lambda text: text.replace("num_samples", ""), "num_samples =.*comments"),
    "optimise": (replace(method="optimize"), str, "was written by method optimize"),
    "variational": (replace(method="variational"), str, "written by method variational"),
    "fixed_param": (
        replace(algorithm="fixed_param"),
        str,
        "written by fixed_param.*give the output",
    ),
    "another run": (lambda text: text.replace("\n-", "\n-1"), str, "lp__ agrees with none"),
    "two models": (
        str,
        lambda text: text.replace("eight_model", "nine_model") if "# id = 3" in text else text,
        "are of different runs, because they have a different model: name the files of one run",
    ),
    "one id": (str, replace(id="7"), "both have chain id = 7, seed = 7, but differ"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_whole_run_is_refused(run: Run, case: str) -> None:
    draws, diagnostics, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        sx.from_cmdstan(run.write(draws, diagnostics))


def test_chains_of_different_lengths_are_refused(run: Run) -> None:
    run.write()
    for path in run.folder.glob("*_2.csv"):
        text = replace(num_samples="400", num_warmup="100", save_warmup="1")(path.read_text())
        path.write_text(text)
    with pytest.raises(ValueError, match=r"500 draws in .*400 draws in .*of equal length"):
        sx.from_cmdstan(run.folder)


def test_a_chain_without_diagnostics_is_refused(run: Run) -> None:
    run.write()
    (run.folder / "eight-diagnostic_4.csv").unlink()
    with pytest.raises(ValueError, match=r"eight_4.csv is without its diag(.|\n)*cmdstanr"):
        sx.from_cmdstan(run.folder)


def test_the_other_table_of_a_chain_is_looked_for_before_sampling_again(run: Run) -> None:
    run.write()
    own = [run.folder / f"eight{kind}_1.csv" for kind in ("", "-diagnostic")]
    beside = r"eight-diagnostic_2.csv is next to .*eight_2.csv .*Name such files as well"
    with pytest.raises(ValueError, match=f"eight_2.csv is without its diagnostic file.*{beside}"):
        sx.from_cmdstan([*own, run.folder / "eight_2.csv"])
    with pytest.raises(ValueError, match=r"no file of draws.*eight_3.csv is next to"):
        sx.from_cmdstan([*own, run.folder / "eight-diagnostic_3.csv"])


@pytest.mark.parametrize("kind", ["", "-diagnostic"])
def test_a_copy_of_another_chain_is_told(run: Run, kind: str) -> None:
    run.write()
    first, second = (run.folder / f"eight{kind}_{chain}.csv" for chain in (1, 2))
    second.write_text(first.read_text())
    with pytest.raises(ValueError, match=f"eight{kind}_1.csv and .*eight{kind}_2.csv are the same"):
        sx.from_cmdstan(run.folder)


def test_an_empty_file_has_not_started(run: Run) -> None:
    (run.write() / "eight_2.csv").write_text("")
    with pytest.raises(NoDrawsError, match=r"eight_2.csv has no draws yet"):
        sx.from_cmdstan(run.folder, partial=True)


def test_compressed_files_are_to_be_unpacked(run: Run) -> None:
    for path in run.write().glob("*.csv"):
        packed = path.with_suffix(".csv.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    with pytest.raises(ValueError, match=f"the files in {run.folder} are compressed: unpack"):
        sx.from_cmdstan(run.folder)
    with pytest.raises(ValueError, match=r"eight_1.csv.gz is compressed: unpack it first \(gunzip"):
        sx.from_cmdstan(run.folder / "eight_1.csv.gz")


def test_parameters_are_finite_and_generated_quantities_may_not_be(run: Run) -> None:
    def broken(column: str) -> Change:
        def change(text: str) -> str:
            lines = text.splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("lp__"))
            place = lines[first].split(",").index(column)
            for i in range(first + 10, first + 13):
                if not lines[i].startswith("#"):
                    cells = lines[i].split(",")
                    lines[i] = ",".join([*cells[:place], "nan", *cells[place + 1 :]])
            return "\n".join(lines) + "\n"

        return change

    found = sx.from_cmdstan(run.write(broken("theta.3")))
    assert found.variables is not None
    missing = np.isnan(found.variables["theta"].values)
    assert missing[..., 2].sum(axis=1).tolist() == [missing[0].sum()] * 4 and missing.any()
    message = r"the parameter theta_tilde.3 is not finite in \d+ draws of .*eight_1.csv.*or sample"
    with pytest.raises(ValueError, match=message):
        sx.from_cmdstan(run.write(broken("theta_tilde.3")))


def test_log_likelihoods_go_to_their_own_group(run: Run, sample: sx.Sample) -> None:
    """The vector theta stands for log_lik: any variable can be moved."""
    run.both(replace(save_warmup="1", num_warmup="100", num_samples="400"))
    found = sx.from_cmdstan(run.folder, log_likelihood="theta")
    assert found.variables is not None and sample.variables is not None
    assert found.variables.names == ("mu", "tau", "theta_tilde")
    moved, theta = found.variables["log_likelihood/theta"], sample.variables["theta"]
    np.testing.assert_array_equal(moved.values, theta.values[:, 100:])
    assert found.training and found.names == NAMES
    estimate = sx.estimate(["tau", "log_likelihood/theta"], found, sx.Polynomial(2))
    assert estimate.names[1] == "log_likelihood/theta[0]"
    tree = sx.to_arviz(found)
    assert list(tree["log_likelihood"].data_vars) == ["theta"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theta is no log likelihood
        compared: Any = loo(tree)
    assert compared.n_data_points == 8
    assert "theta_dim_0" not in tree["posterior"].coords
    with pytest.raises(
        ValueError, match=r"log_likelihood='log_lik' is not a variable.*there are mu, tau"
    ):
        sx.from_cmdstan(run.folder, log_likelihood="log_lik")


def test_missing_files_and_other_things_are_refused(tmp_path: Path) -> None:
    for missing in (tmp_path, tmp_path / "a.csv", str(tmp_path / "*.csv"), []):
        with pytest.raises(FileNotFoundError, match="check the path"):
            sx.from_cmdstan(missing)
    with pytest.raises(TypeError, match="give a CmdStanMCMC, or the paths"):
        sx.from_cmdstan(3)
