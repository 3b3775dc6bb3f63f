"""What the peers gain on the same 22 posteriors with 1,000 draws, as measured in November 2026.

The figures are copied from this project's survey of peers (PEERS.md), not measured by this
benchmark. ZVCV is the R package, CRAN 2.1.3, given the unconstrained draws as a user would, with the
length-scale of its own `medianTune`: `zvcv` of degree 2 by least squares, `CF` with a Gaussian
kernel, and `SECF` of degree 2. The prototype is the NumPy script from which the automatic estimate
was designed. All used the blocks of this benchmark; a block's reference was the average of the
prototype's answers on the nine others.
"""

from typing import NamedTuple

import numpy as np

SORTS = ("means", "squares")


class Gain(NamedTuple):
    """Geometric means of gains, over the means and over the squares."""

    means: float
    squares: float


class Peers(NamedTuple):
    """One posterior: its dimension, three methods of ZVCV, and the prototype."""

    dim: int
    zvcv: Gain
    cf: Gain
    secf: Gain
    prototype: Gain
    prototype_worst: float
    prototype_calibration: float

    @property
    def zvcv_best(self) -> Gain:
        """The best of ZVCV's three methods, chosen with hindsight and for each sort apart."""
        return Gain(*np.max([self.zvcv, self.cf, self.secf], axis=0).tolist())


class Overall(NamedTuple):
    """A peer on all 22: what the survey gives where the figures of each posterior are not at hand."""

    median: Gain
    quartile: Gain
    worst: float


PROTOTYPE = {
    100: Overall(Gain(11_600, 88), Gain(127, 5.3), 0.39),
    200: Overall(Gain(56_400, 723), Gain(476, 22), 0.51),
}
ZVCV_WORST = {"zvcv": 0.46, "CF": 0.005, "SECF": 0.03}
SECONDS = {"prototype": "4.3", "zvcv": "0.02", "CF": "0.6 to 3", "SECF": "0.6 to 3"}


def _row(dim: int, *figures: float) -> Peers:
    zvcv, cf, secf, prototype = (Gain(*figures[i : i + 2]) for i in range(0, 8, 2))
    return Peers(dim, zvcv, cf, secf, prototype, figures[8], figures[9])


# dimension; zvcv, CF, SECF, prototype: means, squares of each; its worst integrand, its calibration
PEERS = {
    "arK-arK": _row(7, 4247, 88, 48.5, 0.318, 2.4e4, 271, 3.8e8, 2.5e6, 2.6e5, 1.12),
    "arma-arma11": _row(4, 8328, 46.7, 445, 8.5, 3.9e5, 724, 1.7e10, 2.8e8, 4.0e7, 1.13),
    "bball_drive_event_0-hmm_drive_0": _row(
        6, 182, 20.6, 7.42, 1.22, 131, 22.8, 272, 258, 6.59, 1.07
    ),
    "bball_drive_event_1-hmm_drive_1": _row(
        6, 1.4e5, 59.4, 12.3, 1.6, 1726, 13, 7.0e5, 9709, 616, 1.28
    ),
    "diamonds-diamonds": _row(26, 1.0e6, 1264, 19.9, 0.0652, 8.1e5, 951, 9.0e5, 1395, 155, 1.04),
    "earnings-logearn_interaction": _row(
        5, 2.0e5, 710, 8.58, 0.133, 2.7e5, 1143, 9.8e10, 1.6e9, 1.0e9, 1.23
    ),
    "eight_schools-eight_schools_centered": _row(
        10, 1.51, 1.84, 0.137, 0.023, 0.865, 0.693, 1.83, 1.53, 0.7, 0.99
    ),
    "eight_schools-eight_schools_noncentered": _row(
        10, 21.3, 2.99, 11.4, 0.545, 8.51, 4.4, 61.5, 7.87, 1.37, 1.1
    ),
    "garch-garch11": _row(4, 34.8, 13.7, 28, 5.72, 545, 200, 497, 645, 39.7, 0.96),
    "gp_pois_regr-gp_pois_regr": _row(
        13, 23.9, 3.05, 0.869, 0.0482, 10, 1.62, 138, 5.55, 0.871, 1.02
    ),
    "gp_pois_regr-gp_regr": _row(3, 275, 18.7, 1590, 28, 6861, 1680, 1.0e4, 7246, 1196, 2.28),
    "hmm_example-hmm_example": _row(
        4, 1.0e7, 28.6, 657, 4.28, 1.1e8, 569, 4.0e9, 5.0e6, 1.2e6, 1.28
    ),
    "hudson_lynx_hare-lotka_volterra": _row(
        8, 139, 5.91, 3.37, 0.153, 149, 4.13, 5.2e4, 272, 39.5, 1.21
    ),
    "kidiq-kidscore_interaction": _row(
        5, 1.9e4, 193, 12.3, 0.116, 3.3e4, 142, 5.5e10, 1.2e8, 2.9e7, 1.47
    ),
    "kilpisjarvi_mod-kilpisjarvi": _row(
        3, 948, 38.1, 3.78, 0.318, 2405, 32.4, 9.2e9, 3.7e8, 3.3e7, 1.28
    ),
    "low_dim_gauss_mix-low_dim_gauss_mix": _row(
        5, 8.1e4, 180, 367, 1.3, 4.4e6, 4453, 1.5e9, 1.1e8, 3.2e7, 1.21
    ),
    "mesquite-logmesquite_logvas": _row(
        8, 82.3, 14.7, 4.7, 0.111, 333, 10.6, 3.4e6, 1.2e4, 520, 1.02
    ),
    "mesquite-mesquite": _row(8, 99, 13.8, 0.457, 0.0151, 11.7, 0.631, 5.1e6, 2.5e4, 1618, 1.05),
    "nes1980-nes": _row(10, 1.2e4, 304, 6.57, 0.17, 3.0e4, 989, 2.2e8, 1.8e6, 1.5e5, 1.02),
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": _row(
        4, 5.29, 1.2, 13.6, 3.2, 49.7, 7.3, 30.2, 12.6, 1.1, 1.8
    ),
    "sblrc-blr": _row(6, 2565, 24.4, 3.9e4, 24.3, 6.8e6, 757, 8.2e9, 2.5e6, 3.6e5, 1.08),
    "sblri-blr": _row(6, 3968, 29.4, 1.6e5, 27.1, 1.4e7, 718, 1.0e10, 2.0e6, 1.7e5, 1.05),
}
