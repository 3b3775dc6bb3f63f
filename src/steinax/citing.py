"""References to cite: the papers behind the methods that an estimate used.

A class lists the keys of its papers in an attribute `references`; the BibTeX entries are below.
"""

import re
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version

ENTRIES = r"""
Stein control variates in one framework
@misc{si2020scalable,
  author = {Shijing Si and Chris J. Oates and Andrew B. Duncan and Lawrence Carin and
    Fran{\c c}ois-Xavier Briol},
  title = {Scalable Control Variates for {Monte Carlo} Methods via Stochastic Optimization},
  year = {2020}, eprint = {2006.07487}, archiveprefix = {arXiv},
}

polynomials
@article{assaraf1999zero,
  author = {Roland Assaraf and Michel Caffarel},
  title = {Zero-Variance Principle for {Monte Carlo} Algorithms},
  year = {1999}, journal = {Physical Review Letters}, volume = {83}, number = {23}, pages = {4682},
  doi = {10.1103/PhysRevLett.83.4682},
}

polynomials
@article{mira2013zero,
  author = {Antonietta Mira and Reza Solgi and Daniele Imparato},
  title = {Zero Variance {Markov} Chain {Monte Carlo} for {Bayesian} Estimators},
  year = {2013}, journal = {Statistics and Computing}, volume = {23}, pages = {653--662},
  doi = {10.1007/s11222-012-9344-6},
}

polynomials with a penalty
@misc{south2018regularized,
  author = {Leah F. South and Chris J. Oates and Antonietta Mira and Christopher Drovandi},
  title = {Regularized Zero-Variance Control Variates},
  year = {2018}, eprint = {1811.05073}, archiveprefix = {arXiv},
}

kernels
@article{oates2017control,
  author = {Chris J. Oates and Mark Girolami and Nicolas Chopin},
  title = {Control Functionals for {Monte Carlo} Integration},
  year = {2017}, journal = {Journal of the Royal Statistical Society: Series B}, volume = {79},
  number = {3}, pages = {695--718}, doi = {10.1111/rssb.12185},
}

a kernel on top of a polynomial
@article{south2022semi,
  author = {Leah F. South and Toni Karvonen and Chris Nemeth and Mark Girolami and Chris J. Oates},
  title = {Semi-Exact Control Functionals from {Sard's} Method},
  year = {2022}, journal = {Biometrika}, volume = {109}, number = {2}, pages = {351--367},
  url = {https://academic.oup.com/biomet/article/109/2/351/6309456},
}

jumps, from forces
@article{delasheras2018better,
  author = {Daniel {de las Heras} and Matthias Schmidt},
  title = {Better than Counting: Density Profiles from Force Sampling},
  year = {2018}, journal = {Physical Review Letters}, volume = {120}, pages = {218001},
  eprint = {1711.00006}, archiveprefix = {arXiv},
}

lattice fields
@misc{bhattacharya2023control,
  author = {Tanmoy Bhattacharya and Scott Lawrence and Jun-Sik Yoo},
  title = {Control Variates for Lattice Field Theory},
  year = {2023}, eprint = {2307.14950}, archiveprefix = {arXiv},
}

pair distributions from forces
@article{borgis2013computation,
  author = {Daniel Borgis and Roland Assaraf and Benjamin Rotenberg and Rodolphe Vuilleumier},
  title = {Computation of Pair Distribution Functions and Three-Dimensional Densities with a Reduced
    Variance Principle},
  year = {2013}, journal = {Molecular Physics}, volume = {111}, number = {22--23},
  pages = {3486--3492}, doi = {10.1080/00268976.2013.838316},
}

pair distributions from forces
@article{coles2021reduced,
  author = {Samuel W. Coles and Etienne Mangaud and Daan Frenkel and Benjamin Rotenberg},
  title = {Reduced Variance Analysis of Molecular Dynamics Simulations by Linear Combination of
    Estimators},
  year = {2021}, journal = {The Journal of Chemical Physics}, volume = {154}, pages = {191101},
  eprint = {2104.05038}, archiveprefix = {arXiv},
}

neural networks
@misc{zhu2018neural,
  author = {Zhanxing Zhu and Ruosi Wan and Mingjun Zhong},
  title = {Neural Control Variates for Variance Reduction},
  year = {2018}, eprint = {1806.00159}, archiveprefix = {arXiv},
}

random features
@inproceedings{rahimi2007random,
  author = {Ali Rahimi and Benjamin Recht},
  title = {Random Features for Large-Scale Kernel Machines},
  year = {2007}, booktitle = {Advances in Neural Information Processing Systems}, volume = {20},
}

the operator on counts
@article{chen1975poisson,
  author = {Louis H. Y. Chen},
  title = {Poisson Approximation for Dependent Trials},
  year = {1975}, journal = {The Annals of Probability}, volume = {3}, number = {3},
  pages = {534--545}, doi = {10.1214/aop/1176996359},
}

the operator on binary vectors
@article{bresler2019stein,
  author = {Guy Bresler and Dheeraj Nagaraj},
  title = {{Stein's} Method for Stationary Distributions of {Markov} Chains and Application to
    {Ising} Models},
  year = {2019}, journal = {The Annals of Applied Probability}, volume = {29}, number = {5},
  pages = {3230--3265},
}

Stein identities of discrete distributions
@inproceedings{yang2018goodness,
  author = {Jiasen Yang and Qiang Liu and Vinayak Rao and Jennifer Neville},
  title = {Goodness-of-Fit Testing for Discrete Distributions via {Stein} Discrepancy},
  year = {2018}, booktitle = {Proceedings of the 35th International Conference on Machine Learning},
  series = {Proceedings of Machine Learning Research}, volume = {80}, pages = {5561--5570},
}

the operator of a diffusion
@article{gorham2019measuring,
  author = {Jackson Gorham and Andrew B. Duncan and Sebastian J. Vollmer and Lester Mackey},
  title = {Measuring Sample Quality with Diffusions},
  year = {2019}, journal = {The Annals of Applied Probability}, volume = {29}, number = {5},
  eprint = {1611.06972}, archiveprefix = {arXiv},
}

a network that has seen other tasks
@misc{sun2023meta,
  author = {Zhuo Sun and Chris J. Oates and Fran{\c c}ois-Xavier Briol},
  title = {Meta-learning Control Variates: Variance Reduction with Limited Data},
  year = {2023}, eprint = {2303.04756}, archiveprefix = {arXiv},
}

related integrals, fitted together
@misc{sun2021vector,
  author = {Zhuo Sun and Alessandro Barp and Fran{\c c}ois-Xavier Briol},
  title = {Vector-Valued Control Variates},
  year = {2021}, eprint = {2109.08944}, archiveprefix = {arXiv},
}

the solver Nystrom
@inproceedings{williams2001using,
  author = {Christopher K. I. Williams and Matthias Seeger},
  title = {Using the {Nystr{\"o}m} Method to Speed Up Kernel Machines},
  year = {2001}, booktitle = {Advances in Neural Information Processing Systems}, volume = {13},
  pages = {682--688},
}

the stochastic solver, Point-SAGA
@inproceedings{defazio2016simple,
  author = {Aaron Defazio},
  title = {A Simple Practical Accelerated Method for Finite Sums},
  year = {2016}, booktitle = {Advances in Neural Information Processing Systems}, volume = {29},
  pages = {676--684},
}

cross-fitting
@article{chernozhukov2018double,
  author = {Victor Chernozhukov and Denis Chetverikov and Mert Demirer and Esther Duflo and
    Christian Hansen and Whitney Newey and James Robins},
  title = {Double/Debiased Machine Learning for Treatment and Structural Parameters},
  year = {2018}, journal = {The Econometrics Journal}, volume = {21}, number = {1},
  pages = {C1--C68}, doi = {10.1111/ectj.12097},
}

thinned draws
@article{riabiz2022optimal,
  author = {Marina Riabiz and Wilson Ye Chen and Jon Cockayne and Pawel Swietach and Steven A.
    Niederer and Lester Mackey and Chris J. Oates},
  title = {Optimal Thinning of {MCMC} Output},
  year = {2022}, journal = {Journal of the Royal Statistical Society: Series B}, volume = {84},
  number = {4}, pages = {1059--1081}, doi = {10.1111/rssb.12503},
}

effective sample sizes and R-hat
@article{vehtari2021rank,
  author = {Aki Vehtari and Andrew Gelman and Daniel Simpson and Bob Carpenter and Paul-Christian
    B{\"u}rkner},
  title = {Rank-Normalization, Folding, and Localization: An Improved {R-hat} for Assessing
    Convergence of {MCMC}},
  year = {2021}, journal = {Bayesian Analysis}, volume = {16}, number = {2}, pages = {667--718},
  doi = {10.1214/20-BA1221},
}

how heavy the tails are, in the audit
@article{vehtari2024pareto,
  author = {Aki Vehtari and Daniel Simpson and Andrew Gelman and Yuling Yao and Jonah Gabry},
  title = {{Pareto} Smoothed Importance Sampling},
  year = {2024}, journal = {Journal of Machine Learning Research}, volume = {25}, number = {72},
  pages = {1--58}, url = {https://jmlr.org/papers/v25/19-556.html},
}
"""  # each entry follows a line with its reason: BibTeX ignores text between entries
SOFTWARE = r"""the software
@software{steinax,
  author = {{The steinax developers}},
  title = {steinax: Stein Control Variates for {Markov} Chain {Monte Carlo}},
  version = {VERSION},
}"""
METHOD = "si2020scalable"
SEMI_EXACT = "south2022semi"
FIELD = re.compile(r"(\w+) = \{((?:[^{}]|\{[^{}]*\})*)\}")
LETTERS = {r"{\c c}": "ç", r"{\"o}": "ö", r"{\"u}": "ü"}


@dataclass(frozen=True)
class Reference:
    """A paper or a program to cite.

    Attributes:
        reason: the method it is cited for.
        bibtex: the BibTeX entry, in ASCII.

    >>> print(citations().references[1])
    Shijing Si, Chris J. Oates, Andrew B. Duncan, Lawrence Carin and François-Xavier Briol (2020). ...
    """

    reason: str
    bibtex: str

    @property
    def key(self) -> str:
        """The key of the BibTeX entry."""
        return self.bibtex[self.bibtex.index("{") + 1 : self.bibtex.index(",")]

    def __str__(self) -> str:
        """Format authors, year, title, place of publication and link."""
        text = " ".join(self.bibtex.split())
        for command, letter in LETTERS.items():
            text = text.replace(command, letter)
        entry = {name: re.sub("[{}]", "", value) for name, value in FIELD.findall(text)}
        *first, last = entry["author"].split(" and ")
        names = f"{', '.join(first)} and {last}" if first else last
        year = f" ({entry['year']})" if "year" in entry else ""
        venue = entry.get("journal", entry.get("booktitle", ""))
        venue += f" {entry['volume']}" if "volume" in entry else ""
        venue += f"({entry['number']})" if "number" in entry else ""
        venue += f", {entry['pages'].replace('--', '-')}" if "pages" in entry else ""
        link = f"https://doi.org/{entry['doi']}" if "doi" in entry else entry.get("url", "")
        link = f"arXiv:{entry['eprint']}" if "eprint" in entry else link
        edition = f"Version {entry['version']}" if "version" in entry else ""
        parts = (names + year, entry["title"], venue, edition, link)
        return ". ".join(part for part in parts if part) + "."


@dataclass(frozen=True)
class Citations:
    """The software and the papers behind an estimate: print it, or take `bibtex`.

    Attributes:
        references: in recommended reading order.

    >>> import steinax as sx
    >>> "2006.07487" in sx.citations().bibtex
    True
    """

    references: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """All BibTeX entries, for a file `references.bib`."""
        return "\n\n".join(reference.bibtex for reference in self.references)

    def __len__(self) -> int:
        return len(self.references)

    def __repr__(self) -> str:
        return "\n".join(f"For {reference.reason}:\n  {reference}" for reference in self.references)


def citations(used: object = None) -> Citations:
    """List what to cite for an estimate: the software and the papers of the methods used.

    For an automatic choice these are the papers of the candidates with a weight, not of all that were
    tried.

    Args:
        used: what `estimate`, `weigh` or `evidence` returned, or a family, an operator or a solver; by
            default the software and its method alone.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> cited = sx.citations(sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)))
    >>> [reference.key for reference in cited.references][2:4]
    ['assaraf1999zero', 'mira2013zero']
    """
    keys = references_of(used)
    if used is not None and not keys and not hasattr(used, "references"):
        raise TypeError(
            f"a {type(used).__name__} has no references: give the result of estimate or weigh, a family "
            "or a solver, or no argument for the software and its method."
        )
    papers = [_reference(entry) for entry in ENTRIES.strip().split("\n\n")]
    wanted = [paper for paper in papers if paper.key in {METHOD, *keys}]
    return Citations((_reference(SOFTWARE.replace("VERSION", version("steinax"))), *wanted))


def references_of(*used: object) -> tuple[str, ...]:
    """Collect the reference keys of objects and of the objects that they hold."""
    keys: dict[str, None] = {}
    for item in used:
        held: tuple[object, ...] = item if isinstance(item, tuple) else ()
        if is_dataclass(item) and not isinstance(item, type):  # equinox modules are dataclasses
            keys |= dict.fromkeys(getattr(item, "references", ()))
            held = tuple(getattr(item, field.name, None) for field in fields(item))
        keys |= dict.fromkeys(references_of(*held)) if held else {}
    return tuple(keys)


def references_of_sum(*terms: object) -> tuple[str, ...]:
    """Collect the reference keys of terms fitted together: kernel plus polynomial has its own paper."""
    keys = references_of(*terms)
    both = {"mira2013zero", "oates2017control"} <= set(keys)
    return (*keys, SEMI_EXACT) if both else keys


def _reference(text: str) -> Reference:
    reason, entry = text.split("\n", 1)
    return Reference(reason, re.sub(r"\}, (?=\w+ = )", "},\n  ", entry))
