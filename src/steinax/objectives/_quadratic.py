from typing import ClassVar

import equinox as eqx


class Declared(eqx.Module):
    """A loss or a penalty that says whether it is a quadratic form.

    Solvers of linear systems know only quadratic forms. A class with another `__call__` does not inherit
    the answer: it is no quadratic form, unless it says so anew.
    """

    is_quadratic: ClassVar[bool] = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls) and "is_quadratic" not in vars(cls):
            cls.is_quadratic = False
