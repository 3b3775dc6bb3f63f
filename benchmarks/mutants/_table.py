"""The mutants: a guard, an error or a promise of the package taken away, and the test that must notice."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """A copy of the package in which one piece of code is another.

    Args:
        name: what is wrong with it, in plain words.
        path: the file, within the package.
        code: what the file holds exactly once.
        instead: what stands there in the mutant.
        tests: of the fast set, as pytest names them; each must fail.
    """

    name: str
    path: str
    code: str
    instead: str
    tests: tuple[str, ...]

    def changed(self, package: Path) -> str:
        """The text of the mutant's file.

        Args:
            package: the folder of the package as it is.
        """
        text = (package / self.path).read_text(encoding="utf-8")
        if (count := text.count(self.code)) != 1:
            raise ValueError(
                f"the mutant {self.name!r} replaces {self.code!r}, which {self.path} holds {count} times: "
                "give it code that stands there once (benchmarks/mutants/_table.py)."
            )
        return text.replace(self.code, self.instead)


def _mutant(name: str, path: str, code: str, instead: str, *tests: str) -> Mutant:
    return Mutant(name, path, code, instead, tuple(f"tests/{test}" for test in tests))


TRAINING = "estimation/test_training.py"
CHAINS = "chains/test_statistics.py"
STREAMED = "chains/test_streamed.py"
CHOICE = "estimation/test_choice.py"
FARM = "farm/test_equality.py"
FAILURES = "farm/test_failures.py"
SCORES = "auditing/test_scores.py"
GUARDS = "auditing/test_guards.py"
STREAM = "estimation/test_streaming.py::test_is_least_squares_without_each_fold[polynomial]"
FUNCTIONALS = "estimation/test_functionals.py"

ERROR_BARS = (
    _mutant(
        "what training points show of the tails is not in the error bar",
        "solvers/_regression.py",
        "return np.maximum(self.share @ both**2 - residual.var(axis=0), 0.0)",
        "return np.zeros(residual.shape[1])",
        f"{TRAINING}::TestErrorBar::test_what_training_points_show_beyond_the_draws_is_in_it",
    ),
    _mutant(
        "training points are averaged",
        "solvers/_regression.py",
        "residual, beside = residual[draw], residual[~draw]",
        "residual, beside = residual[: draw.sum()], residual[draw.sum() :]",
        f"{TRAINING}::TestGivenFamily::test_is_the_mean_over_draws_of_fits_to_all_other_rows",
    ),
    _mutant(
        "training points that include draws are used",
        "data/_coordinates.py",
        "if _share_a_point(part, sample)\n        else",
        "if False\n        else",
        "data/test_training.py::TestRegion"
        "::test_points_computed_along_with_the_draws_are_left_out_and_that_is_said",
    ),
    _mutant(
        "training points beside a narrow ridge are used",
        "data/_coordinates.py",
        "& _near(part.x, sample)",
        "",
        "data/test_training.py::TestRegion::test_a_point_beside_a_narrow_ridge_counts_as_far",
    ),
    _mutant(
        "chains that lie apart are not charged for it",
        "chains/_statistics.py",
        "np.maximum(mcse, between_chain_error(means))",
        "mcse",
        f"{CHAINS}::test_chains_that_lie_apart_are_charged_by_what_their_means_differ",
    ),
    _mutant(
        "variance that the series does not show is not added",
        "chains/_statistics.py",
        "np.sqrt(unseen))",
        "0.0)",
        f"{CHAINS}::test_variance_that_the_series_does_not_show_is_added",
    ),
    _mutant(
        "degrees of freedom ignore kurtosis",
        "chains/_statistics.py",
        "np.maximum(kurtosis - 3, 0)",
        "0.0 * kurtosis",
        f"{CHAINS}::test_heavy_tails_leave_fewer_degrees_of_freedom",
    ),
    _mutant(
        "degrees of freedom exceed the draws",
        "chains/_statistics.py",
        "draws = np.minimum(ess, draws)",
        "draws = ess",
        f"{CHAINS}::test_heavy_tails_leave_fewer_degrees_of_freedom",
    ),
    _mutant(
        "batches of a chain are not runs",
        "chains/_statistics.py",
        "cut.reshape(chains, count, size, k).mean(axis=2)",
        "cut.reshape(chains, size, count, k).mean(axis=1)",
        f"{CHAINS}::test_batches_are_means_of_consecutive_draws",
    ),
    _mutant(
        "effective sample sizes ignore autocorrelation",
        "chains/_statistics.py",
        "tau = 2.0 * np.where(before, lowest, 0.0).sum(axis=1) - 1.0 + more",
        "tau = np.ones(len(pairs))",
        f"{CHAINS}::test_error_is_that_of_theory[0.8]",
    ),
    _mutant(
        "sums of autocorrelations may rise",
        "chains/_statistics.py",
        "lowest = np.minimum.accumulate(pairs, axis=1)",
        "lowest = pairs",
        "chains/test_effective.py::test_equals_arviz[4-250]",
    ),
    _mutant(
        "R-hat does not split chains",
        "chains/_statistics.py",
        "between = means.var(axis=1, ddof=1)",
        "between = means.reshape(series, chains, 2).mean(axis=2).var(axis=1, ddof=1)",
        f"{CHAINS}::test_equals_arviz[0.9]",
    ),
    _mutant(
        "an exact answer has the error zero",
        "chains/_statistics.py",
        "np.where(constant, floor, np.maximum(mcse, floor))",
        "np.where(constant, 0.0, mcse)",
        f"{CHAINS}::TestFloor::test_a_constant_series_has_an_error_that_is_small_and_not_zero",
    ),
    _mutant(
        "the error of a weighted average is not that of a ratio",
        "chains/_statistics.py",
        "return centre + share * (series - centre)",
        "return share * series",
        f"{CHAINS}::test_weighted_averages_have_the_error_of_a_ratio",
    ),
    _mutant(
        "moves of the fits are not charged for",
        "solvers/_regression.py",
        "return moved - moved.mean(axis=-2, keepdims=True)",
        "return 0.0 * moved",
        "estimation/test_automatic.py::TestInstability::test_fits_that_move_are_charged_for_it",
    ),
    _mutant(
        "the jackknife counts twice what depends on two draws",
        "estimation/_choice.py",
        "of_tail = np.interp(k, TAIL, (0.5, 1.0))",
        "of_tail = 1.0",
        "estimation/test_automatic.py::TestInstability::"
        "test_more_of_the_jackknife_counts_where_a_few_draws_determine_the_fit",
    ),
    _mutant(
        "what is left of large numbers is surer than they are",
        "chains/_statistics.py",
        "chain_statistics(series, _largest(np.asarray(f)))",
        "chain_statistics(series)",
        f"{CHAINS}::TestFloor::test_what_is_left_of_large_numbers_is_not_surer_than_they_are",
    ),
    _mutant(
        "intervals are those of a normal distribution",
        "chains/_statistics.py",
        "stdtrit(freedom, (1 + level) / 2)",
        "stdtrit(freedom + 1e9, (1 + level) / 2)",
        "estimation/test_errors.py::test_t_intervals_cover_where_normal_ones_do_not",
    ),
)

GATE = (
    _mutant(
        "held-out draws shape features",
        "estimation/_directions.py",
        "others = np.r_[0 : group[0], group[1] : draws.size]",
        "others = np.r_[0 : draws.size]",
        "estimation/test_tied.py::test_no_feature_depends_on_the_draws_it_is_averaged_over",
    ),
    _mutant(
        "the gate to plain is open",
        "estimation/_choice.py",
        "plain = mixture_variance + apart > clearly * plain_variance",
        "plain = mixture_variance + apart > np.inf",
        f"{CHOICE}::test_candidates_that_contradict_each_other_are_left",
        f"{CHOICE}::test_fits_that_move_are_left",
    ),
    _mutant(
        "the gate does not count what candidates differ by",
        "estimation/_choice.py",
        "plain = mixture_variance + apart > clearly",
        "plain = mixture_variance > clearly",
        f"{CHOICE}::test_candidates_that_contradict_each_other_are_left",
    ),
    _mutant(
        "the gate does not count the moves of the fits",
        "estimation/_choice.py",
        "mixture_variance = _of_average(residual, pool.per_draw, chains) + unstable",
        "mixture_variance = _of_average(residual, pool.per_draw, chains)",
        f"{CHOICE}::test_fits_that_move_are_left",
    ),
    _mutant(
        "the gate has no margin",
        "estimation/_choice.py",
        "clearly = 1 - MARGIN / np.sqrt(len(residual))",
        "clearly = 1.0",
        f"{CHOICE}::test_a_little_better_is_not_clearly_better",
    ),
    _mutant(
        "useless candidates are mixed with the plain average",
        "estimation/_choice.py",
        "plain |= pool.least.min(axis=1) >= clearly * variance[0]",
        "pass",
        f"{CHOICE}::test_an_average_with_a_useless_candidate_is_not_better",
    ),
    _mutant(
        "what candidates differ by is not in the error",
        "estimation/_choice.py",
        "return np.maximum(excess, 0.0)",
        "return 0.0 * excess",
        f"{CHOICE}::test_what_candidates_differ_by_enters_the_error",
    ),
    _mutant(
        "the moves of a mixture's fits are not in the error",
        "estimation/_choice.py",
        "return np.where(np.isfinite(excess), excess, (moved**2).sum(axis=0))",
        "return np.zeros_like(excess)",
        f"{CHOICE}::test_fits_that_move_a_little_are_charged_for_it",
    ),
    _mutant(
        "a plain answer keeps the mixture's series",
        "estimation/_choice.py",
        "residual[:, plain] = pool.plain[:, plain]",
        "pass",
        f"{CHOICE}::test_fits_that_move_are_left",
    ),
    _mutant(
        "plain averages are charged for moving as averages do",
        "estimation/_choice.py",
        "moved[:] = 0.0",
        "pass",
        f"{CHOICE}::test_plain_averages_are_not_charged_for_moving_as_averages_do",
    ),
    _mutant(
        "a mixture believes what its series show",
        "estimation/_choice.py",
        "return moments * np.outer(scale, scale)",
        "return moments",
        f"{CHOICE}::test_weights_are_by_the_variance_to_reckon_with",
    ),
    _mutant(
        "any candidate may be in a mixture",
        "estimation/_choice.py",
        "usable = pool.least <= NEAR * pool.least.min(axis=1, keepdims=True)",
        "usable = np.isfinite(pool.least)",
        f"{CHOICE}::test_candidates_far_from_the_best_are_not_mixed_in",
    ),
)

FITS = (
    _mutant(
        "control variates of linear families are zero",
        "families/_base.py",
        "return self.features(state, x, score) @ params",
        "return 0.0 * (self.features(state, x, score) @ params)",
        "documentation/test_paper_table.py::test_row[polynomial of total degree $k$]",
    ),
    _mutant(
        "a fold is fitted to with the others",
        "estimation/_splits.py",
        "return moved(solver.crossfit(problem, folds, key), problem)",
        "return InSample().control(problem, chains, solver, key)",
        "estimation/test_splits.py::TestHonesty::test_held_out_draws_do_not_reach_their_own_fit",
    ),
    _mutant(
        "folds cross chains",
        "estimation/_splits.py",
        "chains * -(-8 // chains)",
        "8",
        "estimation/test_splits.py::TestFolds::test_no_fold_crosses_a_chain_by_default",
    ),
    _mutant(
        "fits have seen the fold that they are used on",
        "solvers/_regression.py",
        "error = blocks.errors(alpha, y)",
        "error = alpha[..., : folds[-1][1], :]",
        "solvers/test_regression.py::TestLeavingOut::test_is_fitting_to_the_others",
    ),
    _mutant(
        "columns of heavy tails are kept",
        "estimation/_blocks.py",
        "if not bad.any():",
        "if bad.any() or True:",
        "estimation/test_tails.py::TestColumns::test_of_a_student_t_are_left_out_and_that_is_said",
    ),
    _mutant(
        "columns of heavy tails are left out though they serve",
        "estimation/_blocks.py",
        "keep = _variance(whole) < BETTER * _variance(light_fit)",
        "keep = _variance(whole) < 0.0",
        "estimation/test_tails.py::TestColumns::test_of_a_gaussian_are_kept_where_they_serve",
    ),
    _mutant(
        "a fit in-sample has an error bar",
        "estimation/_splits.py",
        "solution.note, reason=why",
        "solution.note, reason=None",
        "estimation/test_estimate.py::TestNumbers::test_in_sample_has_no_error_and_says_why",
    ),
    _mutant(
        "holding out averages over the draws that were fitted to",
        "estimation/_splits.py",
        "held = problem.take(index[:, cut:].ravel())",
        "held = problem.take(index.ravel())",
        "estimation/test_splits.py::TestHonesty::test_holding_out_averages_over_the_rest_only",
    ),
)

FARM_GUARDS = (
    _mutant(
        "a farm does not charge for chains that lie apart",
        "chains/_statistics.py",
        "with_floor(result.mcse, rows.mean(axis=2).T, unseen)",
        "with_floor(result.mcse, 0.0 * rows.mean(axis=2).T, unseen)",
        f"{FARM}::test_a_few_posteriors",
    ),
    _mutant(
        "a farm does not charge for the moves of its fits",
        "farm/_batched.py",
        "unseen = (moves(",
        "unseen = 0.0 * (moves(",
        f"{FARM}::test_a_few_posteriors",
    ),
    _mutant(
        "a farm's folds are not those of an estimate",
        "farm/_batched.py",
        "CrossFit().boundaries(chains, length)",
        "CrossFit(4 * chains).boundaries(chains, length)",
        f"{FARM}::test_a_few_posteriors",
    ),
    _mutant(
        "a farm trusts fits that have lost their digits",
        "farm/_batched.py",
        "alone[fit] = ~(at.sound & regression.sound)",
        "pass",
        f"{FARM}::test_few_draws_and_singular_fits_go_one_by_one",
    ),
    _mutant(
        "a farm computes posteriors of too few draws together",
        "farm/_batched.py",
        "return p > 0 and enough and",
        "return p > 0 and",
        f"{FARM}::test_few_draws_and_singular_fits_go_one_by_one",
    ),
    _mutant(
        "a farm asks less of scores than the audit",
        "farm/_batched.py",
        "quantile = -ndtri(false_alarms(",
        "quantile = -2 * ndtri(false_alarms(",
        f"{FARM}::test_statuses_are_what_the_audit_says",
    ),
    _mutant(
        "a farm does not look at single chains",
        "farm/_batched.py",
        " & _chains_hold(marginal[:, : 2 * dim], chains)",
        "",
        f"{FARM}::test_a_chain_that_is_wrong_alone_is_refused",
    ),
    _mutant(
        "a farm does not test the scores",
        "farm/_batched.py",
        "~surely_hold(at, chains) | suspicious(",
        "suspicious(",
        f"{FAILURES}::test_every_failure_is_its_own",
    ),
    _mutant(
        "a farm keeps the numbers of posteriors that it refuses",
        "farm/_batch.py",
        "np.where(refused, np.nan, numbers[:, i])",
        "numbers[:, i]",
        f"{FAILURES}::test_every_failure_is_its_own",
    ),
    _mutant(
        "a farm does not see chains that stay where they are",
        "farm/_batched.py",
        "(stays > STUCK).any(axis=1) | ",
        "",
        f"{FAILURES}::test_chains_that_stand_still",
    ),
    _mutant(
        "a farm does not see chains that hardly move",
        "farm/_batched.py",
        " | still.any(axis=1)",
        "",
        f"{FAILURES}::test_chains_that_stand_still",
    ),
    _mutant(
        "a farm does not see chains that are the same",
        "farm/_batched.py",
        "flagged = twins | ",
        "flagged = ",
        f"{FAILURES}::test_every_failure_is_its_own",
    ),
    _mutant(
        "a farm does not count divergences",
        "farm/_batched.py",
        "flagged |= diverging.mean(axis=(1, 2)) > DIVERGING",
        "pass",
        f"{FAILURES}::test_divergences",
    ),
    _mutant(
        "a farm computes with what is not finite",
        "farm/_batch.py",
        "excluded[int(i)] = (NOT_FINITE, str(error))",
        "pass",
        f"{FAILURES}::test_every_failure_is_its_own",
    ),
    _mutant(
        "a farm of an unadjusted sampler does not look at its chains",
        "farm/_batch.py",
        'mode == "unadjusted" and not chains',
        'mode == "unadjusted"',
        f"{FAILURES}::test_chains_that_are_not_in_order_are_refused_of_an_unadjusted_sampler",
    ),
    _mutant(
        "a farm does not refuse what fails its audit",
        "farm/_batch.py",
        'mode != "warn"',
        "False",
        f"{FAILURES}::test_every_failure_is_its_own",
    ),
    _mutant(
        "a farm's rows come in another order",
        "farm/_result.py",
        "back = np.argsort(order)",
        "back = order",
        "farm/test_collections.py::test_rows_are_in_the_order_of_their_sources",
    ),
)

STREAMS = (
    _mutant(
        "a stream's value is off by one",
        "chains/_streamed.py",
        "centre + size * sums.chain_means.mean(axis=0)",
        "centre + 1 + size * sums.chain_means.mean(axis=0)",
        f"{STREAMED}::test_of_short_chains_are_those_of_the_series",
        STREAM,
    ),
    _mutant(
        "a stream's exact answer has the error zero",
        "chains/_streamed.py",
        "np.where(constant, floor, np.maximum(size * mcse, floor))",
        "np.where(constant, 0.0, size * mcse)",
        f"{STREAMED}::test_of_a_constant_are_at_the_floor",
    ),
    _mutant(
        "a stream does not charge for chains that lie apart",
        "chains/_streamed.py",
        "unit * sums.chain_means, unseen)",
        "0.0 * sums.chain_means, unseen)",
        f"{STREAMED}::test_of_chains_that_lie_apart_are_those_of_the_series",
    ),
    _mutant(
        "a stream does not charge for the moves of its fits",
        "solvers/_streaming.py",
        "unseen = (moves_of_means(",
        "unseen = 0.0 * (moves_of_means(",
        STREAM,
    ),
    _mutant(
        "a stream's folds are fitted to with the others",
        "solvers/_moments.py",
        "total.without(fold).only(columns)",
        "total.only(columns)",
        STREAM,
    ),
)

AUDIT = (
    _mutant(
        "the audit refuses at half the critical values",
        "auditing/_identities.py",
        "t = -stdtrit(",
        "t = -0.5 * stdtrit(",
        f"{SCORES}::TestRightScores::test_are_not_refused",
    ),
    _mutant(
        "the audit refuses at twice the critical values",
        "auditing/_identities.py",
        "t = -stdtrit(",
        "t = -2.0 * stdtrit(",
        f"{SCORES}::TestIdentities::test_sees_what_the_others_do_not",
    ),
    _mutant(
        "the audit has no tanh",
        "auditing/_identities.py",
        "bounded * v + 1.0 - bounded**2, wave]",
        "0.0 * v, wave]",
        f"{SCORES}::TestIdentities::test_sees_what_the_others_do_not[tanh]",
    ),
    _mutant(
        "the audit has no cosine",
        "auditing/_identities.py",
        "bounded * v + 1.0 - bounded**2, wave]",
        "bounded * v + 1.0 - bounded**2, 0.0 * wave]",
        f"{SCORES}::TestIdentities::test_sees_what_the_others_do_not[cosine]",
    ),
    _mutant(
        "the audit has no pairs of dimensions",
        "auditing/_identities.py",
        "pairs = (z[..., i : i + 1] * t + unit[i] for",
        "pairs = (0.0 * t for",
        f"{SCORES}::TestIdentities::test_sees_what_the_others_do_not[pair]",
    ),
    _mutant(
        "the audit does not see chains that stay where they are",
        "auditing/_audit.py",
        "(stays > STUCK) | (ratio < STILL)",
        "ratio < STILL",
        "auditing/test_chains.py::test_stuck_chain",
    ),
    _mutant(
        "the audit does not see chains that hardly move",
        "auditing/_audit.py",
        "(stays > STUCK) | (ratio < STILL)",
        "stays > STUCK",
        "auditing/test_chains.py::test_stuck_chain",
    ),
    _mutant(
        "the audit does not see chains that are the same",
        "auditing/_audit.py",
        "copies = _shared(sample) if sample.space is None else _same(sample)",
        "copies = None",
        "auditing/test_chains.py::test_duplicate_chains",
    ),
    _mutant(
        "divergences are never fatal",
        "auditing/_audit.py",
        "fatal=fraction > DIVERGING",
        "fatal=fraction > 1",
        "auditing/test_chains.py::test_divergences",
    ),
    _mutant(
        "the audit believes short chains that seem to forget at once",
        "auditing/_identities.py",
        "ess, lags = np.minimum(ess, np.median(ess)), np.maximum(lags, np.median(lags))",
        "pass",
        f"{SCORES}::TestRightScores::test_are_not_refused",
    ),
    _mutant(
        "the audit does not widen for long tails",
        "auditing/_identities.py",
        "return t + widening * (found.mean * found.skewness < 0), t + widening",
        "return t, t",
        f"{SCORES}::test_a_long_tail_that_was_rarely_drawn_is_allowed_for",
    ),
    _mutant(
        "the audit's errors ignore kurtosis",
        "auditing/_identities.py",
        "np.maximum(kurtosis - 1.0, 1.0)",
        "1.0",
        "auditing/test_tails.py::test_a_variance_of_one_draw_has_few_degrees_of_freedom",
    ),
)

AUDIT_GUARDS = (
    _mutant(
        "energies are not looked at",
        "auditing/_audit.py",
        "energy_finding = None if log_densities is None else energies(log_densities)",
        "energy_finding = None",
        f"{GUARDS}::TestEnergies::test_see_a_constant_that_the_identities_do_not",
    ),
    _mutant(
        "energies refuse errors that do not matter",
        "auditing/_energies.py",
        "if abs(effects[worst]) < least:",
        "if False:",
        f"{GUARDS}::TestEnergies::test_pass_what_is_smaller_than_the_error_of_a_plain_average",
    ),
    _mutant(
        "energies of single chains are not looked at",
        "auditing/_mistakes.py",
        "finding = _one_chain(whole, misfit)",
        "pass",
        f"{GUARDS}::TestEnergies::test_see_a_chain_that_is_wrong_alone",
    ),
    _mutant(
        "identities of single chains are not looked at",
        "auditing/_audit.py",
        "if apart and sample.chains > 1:",
        "if False:",
        f"{GUARDS}::TestIdentities::test_see_a_chain_that_is_wrong_alone",
    ),
    _mutant(
        "the trapezoidal rule keeps the error of a smooth potential",
        "auditing/_energies.py",
        "if np.median(errors[1]) >= HELPS * np.median(errors[0]):",
        "if True:",
        f"{GUARDS}::TestEnergies::test_of_a_quartic_log_density_are_exact",
    ),
    _mutant(
        "an error need not be there at distance zero",
        "auditing/_energies.py",
        "_effects(misfit, form, np.concatenate([form.columns, bends], axis=1))[2]",
        "effects",
        f"{GUARDS}::test_an_error_that_vanishes_with_the_distance_is_that_of_the_rule",
    ),
    _mutant(
        "the audit does not test all dimensions together",
        "auditing/_identities.py",
        "trace = (z * t).mean(axis=2, keepdims=True) + 1.0",
        "trace = 0.0 * z[..., :1]",
        f"{GUARDS}::TestIdentities"
        "::test_of_all_dimensions_together_see_a_temperature_that_none_of_them_does",
    ),
    _mutant(
        "means and squares are tested as rarely as the other identities",
        "auditing/_identities.py",
        "rates[: 2 * dim], rates[-1] = BIAS_ALARM * (1 - of_trace) / (2 * dim), BIAS_ALARM * of_trace",
        "pass",
        f"{GUARDS}::TestIdentities::test_that_bound_a_bias_have_most_of_the_false_alarms",
    ),
    _mutant(
        "copies of chains shifted by a draw pass",
        "auditing/_audit.py",
        "_shared(sample) if sample.space is None else _same(sample)",
        "_same(sample)",
        f"{GUARDS}::TestCopies::test_of_a_chain_that_are_shifted_are_refused[1]",
    ),
    _mutant(
        "chains may not have a single draw in common",
        "auditing/_audit.py",
        "if fraction[low, high] <= SHARED:",
        "if fraction[low, high] <= 0:",
        f"{GUARDS}::TestCopies::test_of_a_few_draws_pass",
    ),
    _mutant(
        "coordinates depend on the draws that are held out",
        "data/_coordinates.py",
        "    if score is None or weights is not None:",
        "    if True:",
        "data/test_affine.py::TestWithScores::test_held_out_draws_do_not_leak_into_estimates[False]",
    ),
    _mutant(
        "polynomials with a ridge penalty have no closed form",
        "solvers/_exact.py",
        "        return self.gram(dim) is None and self.family.gram(self.state) is None",
        "        return False",
        "solvers/test_own_parts.py::"
        "test_polynomials_with_a_sum_of_squares_have_the_closed_form_of_their_kernel[penalty0]",
    ),
    _mutant(
        "elements of Stan's arrays have each other's names",
        "adapters/_stan_names.py",
        "    orders = (matrices, by_member)",
        "    orders = (matrices, by_column)",
        "adapters/test_cmdstan.py::test_arrays_of_vectors_have_their_own_names",
    ),
    _mutant(
        "finite differences are not compared",
        "auditing/_audit.py",
        "compared = [] if log_density is None else _compare(sample, log_density)",
        "compared = []",
        f"{GUARDS}::test_finite_differences_see_what_the_identities_do_not",
    ),
    _mutant(
        "an estimate may contradict the plain average",
        "estimation/_estimate.py",
        "against = contradiction(estimate, wider)",
        "against = None",
        "estimation/test_guards.py::test_a_contradiction_is_refused",
        "estimation/test_guards.py"
        "::test_a_contradiction_is_in_the_report_of_an_estimate_that_goes_on",
    ),
    _mutant(
        "a contradiction is in the report and nobody is told",
        "estimation/_estimate.py",
        "            act_on(report, mode)",
        "            pass",
        "estimation/test_guards.py::test_a_contradiction_is_refused",
    ),
)

FUNCTIONS = (
    _mutant(
        "weights do not charge for the moves of the fit",
        "estimation/_weighted_draws.py",
        "values, held.unseen)",
        "values, np.zeros(()))",
        f"{FUNCTIONALS}::test_means_are_those_of_the_estimate",
    ),
    _mutant(
        "the error of a standard deviation is twice what it is",
        "estimation/_weighted_draws.py",
        "return sigma + moved / (2 * sigma), variance + moved",
        "return sigma + moved / sigma, variance + moved",
        f"{FUNCTIONALS}::test_standard_deviations",
    ),
    _mutant(
        "the error of a ratio ignores its denominator",
        "estimation/_weighted_draws.py",
        "(above - top - value * (below - bottom))",
        "(above - top)",
        f"{FUNCTIONALS}::test_ratios",
    ),
    _mutant(
        "the summary's error of a standard deviation is twice what it is",
        "summarising/_summary.py",
        "np.sqrt(np.maximum(square, 0.0)) / (2 * unit_sd)",
        "np.sqrt(np.maximum(square, 0.0)) / unit_sd",
        "summarising/test_table.py::"
        "test_the_error_of_a_standard_deviation_is_that_of_the_delta_method",
    ),
    _mutant(
        "the summary is surer than rounding allows",
        "summarising/_summary.py",
        "FLOOR = 4 * np.finfo(np.float64).eps",
        "FLOOR = 0.0",
        "summarising/test_table.py::test_exact_answers_are_no_surer_than_rounding_allows",
    ),
)

RULE = "stopping/test_rule.py"
STOPPING = (
    _mutant(
        "a run stops at the first look that is precise",
        "stopping.py",
        "IN_A_ROW = 2",
        "IN_A_ROW = 1",
        f"{RULE}::test_it_stops_at_the_second_look_in_a_row_that_is_precise",
        f"{RULE}::test_a_reason_needs_two_looks_unless_it_is_the_last",
    ),
    _mutant(
        "the errors of a stopped run are those of its last look alone",
        "stopping.py",
        "np.maximum(last.estimate.mcse, np.asarray(before.estimate.mcse) * share)",
        "np.asarray(last.estimate.mcse)",
        f"{RULE}::test_the_reported_errors_are_the_larger_of_the_last_two_looks",
    ),
    _mutant(
        "a run stops however few its effective draws are",
        "stopping.py",
        "np.all(effective >= LEAST)",
        "np.all(effective >= 0)",
        f"{RULE}::test_few_effective_draws_are_not_enough",
    ),
)

CMDSTAN = "adapters/test_cmdstan.py"
FILES = (
    _mutant(
        "an empty file of CmdStan is left out, with its chain",
        "adapters/_cmdstan.py",
        "if not path.stat().st_size:",
        "if False:",
        f"{CMDSTAN}::test_what_is_no_whole_run_is_refused[empty]",
    ),
    _mutant(
        "a damaged line ends a chain of CmdStan",
        "adapters/_cmdstan.py",
        "if not all(whole) and any(whole[whole.index(False) :]):",
        "if False:",
        f"{CMDSTAN}::test_what_is_no_whole_run_is_refused[garbage]",
    ),
    _mutant(
        "a parameter that is not a number is averaged",
        "adapters/_cmdstan.py",
        "_expect_finite(diagnostics, matched)\n    parts",
        "parts",
        f"{CMDSTAN}::test_parameters_are_finite_and_generated_quantities_may_not_be",
    ),
    _mutant(
        "a folder without files is not waited for",
        "stopping.py",
        "while _is_unwritten(source) and",
        "while False and",
        "cli/test_watch.py::test_a_folder_without_files_is_waited_for",
    ),
)

SCORES = "auditing/test_scores.py"
FIRST_CONTACT = (
    _mutant(
        "rare events do not allow for the choice among candidates",
        "estimation/_kinks.py",
        "LUCK = 24.0",
        "LUCK = 0.0",
        "estimation/test_kinks.py::TestProbabilities::test_errors_of_rare_events_allow_for_the_choice",
    ),
    _mutant(
        "the sign of single columns is not tried",
        "auditing/_mistakes.py",
        "(signs, jacobian, constrained, tempered)",
        "(jacobian, constrained, tempered)",
        f"{SCORES}::TestMistakes::test_the_opposite_sign_of_some_columns",
    ),
    _mutant(
        "scores of other draws are called tempered",
        "auditing/_mistakes.py",
        "RELATED = 4.0",
        "RELATED = 0.0",
        f"{SCORES}::TestMistakes::test_scores_of_other_draws_are_not_called_tempered",
    ),
    _mutant(
        "an audit of few draws counts as passed",
        "auditing/_audit.py",
        "few = not self.verified and self.checked and self.limit.max() > 1",
        "few = False",
        "auditing/test_chains.py::test_few_draws_are_inconclusive",
    ),
    _mutant(
        "a log density of jax is evaluated step by step",
        "auditing/_differences.py",
        "compiled = jax.jit(log_density)",
        "compiled = log_density",
        "auditing/test_differences.py::test_a_function_of_jax_is_compiled",
    ),
    _mutant(
        "a given log density counts as the one that was sampled",
        "adapters/_arrays.py",
        '"assumed": log_density is None',
        '"assumed": False',
        "adapters/test_logdensity.py::test_the_audit_says_what_nothing_compared",
    ),
    _mutant(
        "part of a sample is no longer of an assumed log density",
        "data/_sample.py",
        "            assumed=self.assumed,\n",
        "",
        "adapters/test_logdensity.py::test_the_audit_says_what_nothing_compared",
    ),
    _mutant(
        "an exact integrand stretches the axis of a plot",
        "plots/_candidates.py",
        "high = min(max(high, 10.0), PERFECT)",
        "high = min(max(high, 10.0), 1e30)",
        "plots/test_pictures.py::TestWorth::test_an_exact_integrand_is_an_arrow_and_leaves_room_for_others",
    ),
)

MUTANTS = (
    *ERROR_BARS,
    *GATE,
    *FITS,
    *FARM_GUARDS,
    *STREAMS,
    *AUDIT,
    *AUDIT_GUARDS,
    *FUNCTIONS,
    *STOPPING,
    *FILES,
    *FIRST_CONTACT,
)
