"""The papers, one row each, with what they are cited for."""

from ._reference import Reference

METHOD = Reference(
    "si2020scalable",
    "Stein control variates in one framework",
    "misc",
    ("Shijing Si", "Chris J. Oates", "Andrew B. Duncan", "Lawrence Carin", "François-Xavier Briol"),
    "Scalable Control Variates for {Monte Carlo} Methods via Stochastic Optimization",
    2020,
    (("eprint", "2006.07487"), ("archiveprefix", "arXiv")),
)
ZERO_VARIANCE = Reference(
    "assaraf1999zero",
    "polynomials",
    "article",
    ("Roland Assaraf", "Michel Caffarel"),
    "Zero-Variance Principle for {Monte Carlo} Algorithms",
    1999,
    (
        ("journal", "Physical Review Letters"),
        ("volume", "83"),
        ("number", "23"),
        ("pages", "4682"),
        ("doi", "10.1103/PhysRevLett.83.4682"),
    ),
)
POLYNOMIALS = Reference(
    "mira2013zero",
    "polynomials",
    "article",
    ("Antonietta Mira", "Reza Solgi", "Daniele Imparato"),
    "Zero Variance {Markov} Chain {Monte Carlo} for {Bayesian} Estimators",
    2013,
    (
        ("journal", "Statistics and Computing"),
        ("volume", "23"),
        ("pages", "653--662"),
        ("doi", "10.1007/s11222-012-9344-6"),
    ),
)
PENALISED = Reference(
    "south2018regularized",
    "polynomials with a penalty",
    "misc",
    ("Leah F. South", "Chris J. Oates", "Antonietta Mira", "Christopher Drovandi"),
    "Regularized Zero-Variance Control Variates",
    2018,
    (("eprint", "1811.05073"), ("archiveprefix", "arXiv")),
)
KERNELS = Reference(
    "oates2017control",
    "kernels",
    "article",
    ("Chris J. Oates", "Mark Girolami", "Nicolas Chopin"),
    "Control Functionals for {Monte Carlo} Integration",
    2017,
    (
        ("journal", "Journal of the Royal Statistical Society: Series B"),
        ("volume", "79"),
        ("number", "3"),
        ("pages", "695--718"),
        ("doi", "10.1111/rssb.12185"),
    ),
)
SEMI_EXACT = Reference(
    "south2022semi",
    "a kernel on top of a polynomial",
    "article",
    ("Leah F. South", "Toni Karvonen", "Chris Nemeth", "Mark Girolami", "Chris J. Oates"),
    "Semi-Exact Control Functionals from {Sard's} Method",
    2022,
    (
        ("journal", "Biometrika"),
        ("volume", "109"),
        ("number", "2"),
        ("pages", "351--367"),
        ("url", "https://academic.oup.com/biomet/article/109/2/351/6309456"),
    ),
)
NETWORKS = Reference(
    "zhu2018neural",
    "neural networks",
    "misc",
    ("Zhanxing Zhu", "Ruosi Wan", "Mingjun Zhong"),
    "Neural Control Variates for Variance Reduction",
    2018,
    (("eprint", "1806.00159"), ("archiveprefix", "arXiv")),
)
RANDOM_FEATURES = Reference(
    "rahimi2007random",
    "random features",
    "inproceedings",
    ("Ali Rahimi", "Benjamin Recht"),
    "Random Features for Large-Scale Kernel Machines",
    2007,
    (("booktitle", "Advances in Neural Information Processing Systems"), ("volume", "20")),
)
NYSTROM = Reference(
    "williams2001using",
    "the solver Nystrom",
    "inproceedings",
    ("Christopher K. I. Williams", "Matthias Seeger"),
    "Using the {Nyström} Method to Speed Up Kernel Machines",
    2001,
    (
        ("booktitle", "Advances in Neural Information Processing Systems"),
        ("volume", "13"),
        ("pages", "682--688"),
    ),
)
POINT_SAGA = Reference(
    "defazio2016simple",
    "the stochastic solver, Point-SAGA",
    "inproceedings",
    ("Aaron Defazio",),
    "A Simple Practical Accelerated Method for Finite Sums",
    2016,
    (
        ("booktitle", "Advances in Neural Information Processing Systems"),
        ("volume", "29"),
        ("pages", "676--684"),
    ),
)
THINNING = Reference(
    "riabiz2022optimal",
    "thinned draws",
    "article",
    (
        "Marina Riabiz",
        "Wilson Ye Chen",
        "Jon Cockayne",
        "Pawel Swietach",
        "Steven A. Niederer",
        "Lester Mackey",
        "Chris J. Oates",
    ),
    "Optimal Thinning of {MCMC} Output",
    2022,
    (
        ("journal", "Journal of the Royal Statistical Society: Series B"),
        ("volume", "84"),
        ("number", "4"),
        ("pages", "1059--1081"),
        ("doi", "10.1111/rssb.12503"),
    ),
)
SPECTRAL = Reference(
    "belomestny2019variance",
    "the spectral variance",
    "misc",
    (
        "Denis Belomestny",
        "Leonid Iosipoi",
        "Eric Moulines",
        "Alexey Naumov",
        "Sergey Samsonov",
    ),
    "Variance Reduction for {Markov} Chains with Application to {MCMC}",
    2019,
    (("eprint", "1910.03643"), ("archiveprefix", "arXiv")),
)
CROSS_FITTING = Reference(
    "chernozhukov2018double",
    "cross-fitting",
    "article",
    (
        "Victor Chernozhukov",
        "Denis Chetverikov",
        "Mert Demirer",
        "Esther Duflo",
        "Christian Hansen",
        "Whitney Newey",
        "James Robins",
    ),
    "Double/Debiased Machine Learning for Treatment and Structural Parameters",
    2018,
    (
        ("journal", "The Econometrics Journal"),
        ("volume", "21"),
        ("number", "1"),
        ("pages", "C1--C68"),
        ("doi", "10.1111/ectj.12097"),
    ),
)
CONVERGENCE = Reference(
    "vehtari2021rank",
    "effective sample sizes and R-hat",
    "article",
    (
        "Aki Vehtari",
        "Andrew Gelman",
        "Daniel Simpson",
        "Bob Carpenter",
        "Paul-Christian Bürkner",
    ),
    "Rank-Normalization, Folding, and Localization: An Improved {R-hat} for Assessing Convergence of {MCMC}",
    2021,
    (
        ("journal", "Bayesian Analysis"),
        ("volume", "16"),
        ("number", "2"),
        ("pages", "667--718"),
        ("doi", "10.1214/20-BA1221"),
    ),
)
TAILS = Reference(
    "vehtari2024pareto",
    "how heavy the tails are, in the audit",
    "article",
    ("Aki Vehtari", "Daniel Simpson", "Andrew Gelman", "Yuling Yao", "Jonah Gabry"),
    "{Pareto} Smoothed Importance Sampling",
    2024,
    (
        ("journal", "Journal of Machine Learning Research"),
        ("volume", "25"),
        ("number", "72"),
        ("pages", "1--58"),
        ("url", "https://jmlr.org/papers/v25/19-556.html"),
    ),
)
