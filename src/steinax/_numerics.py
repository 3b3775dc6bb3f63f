"""Triangular factors of NumPy and jax arrays, and the floating-point precision of jax."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from numpy.typing import DTypeLike

from ._types import AnyArray, PyTree

TINY = 8 * float(np.finfo(np.float64).eps)


def namespace(*arrays: object) -> Any:
    """Return the array namespace of the first array that is not NumPy's, or NumPy itself.

    >>> namespace(np.zeros(3), None) is np
    True
    """
    for array in arrays:
        if not isinstance(array, np.ndarray) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()  # type: ignore[attr-defined]
    return np


def cholesky(matrix: AnyArray) -> AnyArray:
    """Compute the lower Cholesky factor of a symmetric matrix, or of a stack of them.

    A matrix that is not positive definite gives NaN, as in jax, without affecting the others of its stack.

    >>> cholesky(np.array([[[4.0]], [[-1.0]]])).ravel().tolist()
    [2.0, nan]
    """
    if not isinstance(matrix, np.ndarray):
        return namespace(matrix).linalg.cholesky(matrix)
    if matrix.ndim == 2 and len(matrix) > 64:
        return _large_cholesky(matrix)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.full_like(matrix, np.nan)
        return np.stack([cholesky(block) for block in matrix])


def _large_cholesky(matrix: np.ndarray) -> np.ndarray:
    """Compute a large Cholesky factor by LAPACK directly, without copying to column-major order."""
    from scipy.linalg import get_lapack_funcs

    potrf = get_lapack_funcs(["potrf"], (matrix,))[0]
    factor, info = potrf(matrix.T, lower=1, clean=1)  # the matrix is its own transpose
    return factor if info == 0 else np.full_like(matrix, np.nan)


def solve_triangular(factor: AnyArray, right: AnyArray, transposed: bool = False) -> AnyArray:
    r"""Compute $L^{-1} b$ or $L^{-\top} b$ for a lower triangular factor $L$, or for a stack of them.

    >>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(factor, np.ndarray):
        import jax

        trans = 1 if transposed else 0
        return jax.scipy.linalg.solve_triangular(factor, right, lower=True, trans=trans)
    if factor.ndim > 2:
        inverse = np.linalg.inv(factor)
        return (inverse.mT if transposed else inverse) @ right
    from scipy.linalg import get_blas_funcs

    right = np.asarray(right)
    trsm = get_blas_funcs(["trsm"], (factor, right))[0]
    if factor.flags.f_contiguous:
        return trsm(1.0, factor, right, lower=1, trans_a=int(transposed))
    return trsm(1.0, factor.T, right, lower=0, trans_a=int(not transposed))


def inverse_triangular(factor: AnyArray) -> AnyArray:
    """Invert a lower triangular factor, or each factor of a stack.

    >>> inverse_triangular(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    xp = namespace(factor)
    if xp is not np:
        eye = xp.eye(factor.shape[-1], dtype=factor.dtype)
        return solve_triangular(factor, xp.broadcast_to(eye, factor.shape))
    if factor.ndim > 2 or not np.isfinite(factor[-1, -1]):
        return np.linalg.inv(factor)
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(["trtri"], (factor,))[0](factor, lower=1)[0]


def whitening(gram: AnyArray) -> AnyArray:
    r"""Compute $T$ with $T^\top G T = 1$: an inverse triangular factor, with a small floor on the diagonal.

    >>> whitening(np.array([[4.0]])).round(6).tolist()
    [[0.5]]
    """
    xp = namespace(gram)
    floor = TINY * xp.linalg.trace(gram)
    eye = xp.eye(gram.shape[-1], dtype=gram.dtype)
    return inverse_triangular(cholesky(gram + floor * eye)).T


def precision(dtype: DTypeLike) -> AbstractContextManager[Any]:
    """Enter a scope in which jax computes in `dtype` (float64 or float32), in this thread only."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


def widest[T](compute: Callable[[], T], dtype: DTypeLike) -> T:
    """Call `compute` in the precision of `dtype`, whatever jax was set to before.

    A NumPy array that jax has read in float32, such as the data of a model sampled in float32, stays
    float32 in jax's caches, and mixing it with float64 may fail (seen in jax 0.12). Then the caches are
    cleared and `compute` is called again; functions compiled before are recompiled at their next use.
    """
    with precision(dtype):
        try:
            return compute()
        except (TypeError, jax.errors.JaxRuntimeError) as error:
            if not any(text in str(error) for text in _MIXED):
                raise
        jax.clear_caches()
        return compute()


_MIXED = ("requires arguments to have the same dtypes", "but got buffer with incompatible size")


def reads_single(fn: Callable[..., Any], *args: PyTree) -> bool:
    """Return whether a function, when traced, reads NumPy arrays that jax holds in float32.

    The arrays may be float64 to the user: jax silently keeps using a float32 copy that it made before.
    `jax.clear_caches()` makes it read the array itself again.
    """
    return any(
        not isinstance(constant, jax.Array) and getattr(constant, "dtype", None) == np.float32
        for constant in _constants(jax.make_jaxpr(fn)(*args))
    )


def _constants(program: Any) -> Iterator[Any]:
    """Iterate over the constants of a jaxpr and of the jaxprs nested in it."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        yield from (variable.val for variable in equation.invars if hasattr(variable, "val"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _constants(inner)


def _is_program(node: object) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")


def to_numpy(tree: PyTree) -> PyTree:
    """Move every jax array of a tree to NumPy, so that it keeps its precision outside the scope."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def as_leaf(value: float | np.number | AnyArray) -> AnyArray:
    """Convert a hyper-parameter to an array: traced by jit, so a grid of values shares one compilation."""
    return np.asarray(value, dtype=np.float64)
