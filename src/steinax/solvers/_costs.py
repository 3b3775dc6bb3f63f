r"""What solvers cost: a model of their time, with constants from measured times.

Work is counted in four kinds: multiplications and additions within matrix products and
factorisations, entries of a kernel matrix that are made (an exponential and some passes), and entries
of a matrix that are read for a product with a vector, and calls. Times are taken as

$$ t = s\,(\text{operations} + \text{MAKE} \cdot \text{made} + \text{READ} \cdot \text{read}
+ \text{CALL} \cdot \text{calls}), $$

and `python -m benchmarks.speed costs` finds the constants by least squares, on relative errors, from
the times of `Exact` and `ConjugateGradient`. The iterations below are the medians there.
"""

from typing import NamedTuple

MAKE = 425.0
READ = 34.0
CALL = 1.7e8
KERNEL_ITERATIONS = 35
POLYNOMIAL_ITERATIONS = 7


class Work(NamedTuple):
    """What a solver has to do."""

    operations: float
    made: float = 0.0
    read: float = 0.0
    calls: float = 1.0

    @property
    def cost(self) -> float:
        """In operations of a matrix product."""
        return self.operations + MAKE * self.made + READ * self.read + CALL * self.calls


def exact_work(n: int, dim: int, p: int) -> Work:
    """One factorisation and the matrix for it, primal or dual, whichever is smaller."""
    if p + 1 > n:
        return Work(n**3 / 3 + 6.0 * n**2 * dim, made=n**2)
    return Work(n * p**2 + p**3 / 3, made=n * p)


def polynomial_work(n: int, dim: int, k: int, iterations: int = POLYNOMIAL_ITERATIONS) -> Work:
    """Matrix-free conjugate gradients, degree two: the iterations and the preconditioner."""
    once = n * dim**2 + dim**3 / 3
    return Work(once + (iterations + 1) * 4.0 * k * n * dim**2, read=2.0 * k * n * dim * iterations)


def kernel_work(n: int, dim: int, k: int, iterations: int = KERNEL_ITERATIONS) -> Work:
    """Conjugate gradients with the kernel matrix: that, its preconditioner and the iterations."""
    landmarks = 8 * n**0.5
    once = 6.0 * n**2 * dim + 4 * n * landmarks**2
    many = iterations * n * (n + 2 * landmarks)
    return Work(once + 2.0 * k * many, made=n**2, read=many)
