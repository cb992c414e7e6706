"""Packages that only some scripts need."""

import importlib.util

from bert.common.errors import UserError


def check(extra: str, *names: str, what: str = "") -> None:
    """Checks that packages are installed, without importing them.

    Args:
        extra: their requirements file is `requirements/<extra>.txt`.
        names: as they are imported.
        what: the flag that needs them.

    Raises:
        UserError: some are missing.
    """
    missing = [x for x in names if importlib.util.find_spec(x) is None]
    if missing:
        raise error(extra, *missing, what=what)


def error(
    extra: str, *names: str, what: str = "", path: str | None = None
) -> UserError:
    """The error about packages that are missing or cannot be imported.

    Args:
        extra, names, what: as for `check`.
        path: the file that needs them.
    """
    where = f"{what}: " if what else ""
    return UserError(
        f"{where}missing packages: {', '.join(names)}",
        path=path,
        fix=f"in the checkout: pip install -r requirements/{extra}.txt",
    )
