"""The right samples and everyday mistakes of the benchmark, by the names that tests have for them."""

from benchmarks.trust._scored import (
    MISTAKES as MEASURED,
    Target,
    banana,
    chains,
    funnel,
    gaussian,
    log_gamma,
    mixture,
    student,
)

__all__ = ["MISTAKES", "TARGETS", "chains", "gaussian"]

TARGETS: dict[str, Target] = {
    "gaussian": gaussian,
    "log gamma": log_gamma(2.0),
    "student": student(2.5),
    "banana": banana,
    "funnel": funnel,
    "mixture": mixture,
}
MISTAKES = {
    "flipped sign": MEASURED["flipped sign"],
    "missing log Jacobian": MEASURED["missing Jacobian of a log (2 columns)"],
    "missing logit Jacobian": MEASURED["missing Jacobian of a logit (5 columns)"],
    "permuted columns": MEASURED["permuted columns"],
    "one draw late": MEASURED["scores one draw late"],
    "one draw early": ("lag", lambda x, s: (x[:, :-1], s[:, 1:])),
    "constrained by exp": MEASURED["draws constrained by exp (2 columns)"],
    "constrained by sigmoid": MEASURED["draws constrained by a sigmoid (2 columns)"],
    "temperature 2": MEASURED["tempered, half"],
    "temperature 1/2": MEASURED["tempered, double"],
}
