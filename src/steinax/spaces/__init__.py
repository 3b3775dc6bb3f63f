"""Where draws live when that is not all of R^d: each space with its operator, its audit and its family."""

__all__: list[str] = []
