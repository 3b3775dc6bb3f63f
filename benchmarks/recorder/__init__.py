"""What recorded leapfrog states add to 4 x 25 draws by NUTS, and how much recording slows a sampler down."""

from ._measure import KINDS as KINDS, LONG as LONG, measure as measure
