"""The papers behind operators on counts and binary vectors."""

from ._reference import Reference

STEIN_CHEN = Reference(
    "chen1975poisson",
    "the operator on counts",
    "article",
    ("Louis H. Y. Chen",),
    "Poisson Approximation for Dependent Trials",
    1975,
    (
        ("journal", "The Annals of Probability"),
        ("volume", "3"),
        ("number", "3"),
        ("pages", "534--545"),
        ("doi", "10.1214/aop/1176996359"),
    ),
)
GLAUBER = Reference(
    "bresler2019stein",
    "the operator on binary vectors",
    "article",
    ("Guy Bresler", "Dheeraj Nagaraj"),
    "{Stein's} Method for Stationary Distributions of {Markov} Chains and Application to {Ising} Models",
    2019,
    (
        ("journal", "The Annals of Applied Probability"),
        ("volume", "29"),
        ("number", "5"),
        ("pages", "3230--3265"),
    ),
)
DISCRETE = Reference(
    "yang2018goodness",
    "Stein identities of discrete distributions",
    "inproceedings",
    ("Jiasen Yang", "Qiang Liu", "Vinayak Rao", "Jennifer Neville"),
    "Goodness-of-Fit Testing for Discrete Distributions via {Stein} Discrepancy",
    2018,
    (
        ("booktitle", "Proceedings of the 35th International Conference on Machine Learning"),
        ("series", "Proceedings of Machine Learning Research"),
        ("volume", "80"),
        ("pages", "5561--5570"),
    ),
)


def of_discrete(used: tuple[str, ...]) -> list[Reference]:
    """The papers of the operators in families, as they print."""
    counts = any("BirthDeath" in name or "SteinChen" in name for name in used)
    binary = any("Glauber" in name or "Multilinear(" in name for name in used)
    own = [STEIN_CHEN] * counts + [GLAUBER] * binary
    return [*own, DISCRETE] if own else []
