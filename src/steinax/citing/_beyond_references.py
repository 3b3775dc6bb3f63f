"""The papers behind diffusion operators, wavelets and related tasks."""

from ._reference import Reference

DIFFUSION = Reference(
    "gorham2019measuring",
    "the operator of a diffusion",
    "article",
    ("Jackson Gorham", "Andrew B. Duncan", "Sebastian J. Vollmer", "Lester Mackey"),
    "Measuring Sample Quality with Diffusions",
    2019,
    (
        ("journal", "The Annals of Applied Probability"),
        ("volume", "29"),
        ("number", "5"),
        ("eprint", "1611.06972"),
        ("archiveprefix", "arXiv"),
    ),
)
WAVELETS = Reference(
    "chui1992compactly",
    "spline wavelets",
    "article",
    ("Charles K. Chui", "Jian-zhong Wang"),
    "On Compactly Supported Spline Wavelets and a Duality Principle",
    1992,
    (
        ("journal", "Transactions of the American Mathematical Society"),
        ("volume", "330"),
        ("number", "2"),
        ("pages", "903--915"),
    ),
)
RELATED = Reference(
    "sun2021vector",
    "related integrals, fitted together",
    "misc",
    ("Zhuo Sun", "Alessandro Barp", "François-Xavier Briol"),
    "Vector-Valued Control Variates",
    2021,
    (("eprint", "2109.08944"), ("archiveprefix", "arXiv")),
)
META = Reference(
    "sun2023meta",
    "a network that has seen other tasks",
    "misc",
    ("Zhuo Sun", "Chris J. Oates", "François-Xavier Briol"),
    "Meta-learning Control Variates: Variance Reduction with Limited Data",
    2023,
    (("eprint", "2303.04756"), ("archiveprefix", "arXiv")),
)


def of_beyond(used: tuple[str, ...]) -> list[Reference]:
    """Those of the control variates that took part."""
    words = {"Diffusion(": DIFFUSION, "Wavelets(": WAVELETS, "meta-learned": META}
    return [paper for word, paper in words.items() if any(word in name for name in used)]
