"""Triangular factors for arrays of NumPy and of jax: what the array API standard lacks."""

from typing import Any

import numpy as np

from ._types import AnyArray

TINY = 8 * float(np.finfo(np.float64).eps)


def namespace(*arrays: object) -> Any:
    """The array namespace of the first array that is not NumPy's, or NumPy itself.

    >>> namespace(np.zeros(3), None) is np
    True
    """
    for array in arrays:
        if not isinstance(array, np.ndarray) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()  # type: ignore[attr-defined]
    return np


def cholesky(matrix: AnyArray) -> AnyArray:
    """The lower Cholesky factor of a symmetric matrix, or of a stack of them.

    A matrix that has none gives NaN, as jax has it, and the others of its stack keep theirs.

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
        return np.stack([cholesky(one) for one in matrix])


def _large_cholesky(matrix: np.ndarray) -> np.ndarray:
    """By LAPACK itself, in the order of memory in which it works: no copy is transposed."""
    from scipy.linalg import get_lapack_funcs

    potrf = get_lapack_funcs(["potrf"], (matrix,))[0]
    factor, info = potrf(matrix.T, lower=1, clean=1)  # the matrix is its own transpose
    return factor if info == 0 else np.full_like(matrix, np.nan)


def solve_triangular(factor: AnyArray, right: AnyArray, transposed: bool = False) -> AnyArray:
    r"""$L^{-1} b$, or $L^{-\top} b$, of a lower triangular factor or a stack of them.

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
    """The inverse of a lower triangular factor, or of each of a stack.

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
    r"""$T$ with $T^\top G T = 1$: the inverse of a triangular factor, kept real by a floor.

    >>> whitening(np.array([[4.0]])).round(6).tolist()
    [[0.5]]
    """
    xp = namespace(gram)
    floor = TINY * xp.linalg.trace(gram)
    eye = xp.eye(gram.shape[-1], dtype=gram.dtype)
    return inverse_triangular(cholesky(gram + floor * eye)).T
