"""What solvers cost, in multiplications and additions of a matrix product: a model, not a measurement.

An entry of a matrix that is made or read, and not multiplied within the cache, counts as so many
of them; the two constants are ratios that hold on one core within a factor of two.
"""

ITERATIONS = 25  # of conjugate gradients to one per cent
MAKE = 300  # an entry of a kernel matrix: an exponential and some passes
READ = 25  # an entry of a matrix, in a product with a vector


def exact_cost(n: int, dim: int, p: int) -> float:
    """One factorisation and the matrix for it, primal or dual, whichever is smaller."""
    if p + 1 > n:
        return n**3 / 3 + n**2 * (6 * dim + MAKE)
    return n * p**2 + p**3 / 3


def conjugate_gradient_cost(n: int, dim: int, k: int, matrix_free: bool) -> float:
    """The iterations, and for kernels the matrix and its preconditioner."""
    if matrix_free:
        return ITERATIONS * 4.0 * k * n * dim**2
    landmarks = 8 * n**0.5
    iteration = n**2 * max(READ, 2 * k)
    return n**2 * (6 * dim + MAKE) + 4 * n * landmarks**2 + 2 * ITERATIONS * iteration
