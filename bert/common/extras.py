"""Optional packages, which only some scripts need."""

import importlib.util

from bert.common.errors import UserError


def check(extra: str, *names: str, what: str = "") -> None:
    """Checks that packages are installed, without importing them.

    Args:
        extra: str. Name of their requirements file,
            `requirements/<extra>.txt`.
        *names: str. Names of the packages in `import` statements.
        what: str. The flag that needs them, for the message.

    Raises:
        UserError: some are missing.
    """
    missing = [x for x in names if importlib.util.find_spec(x) is None]
    if missing:
        raise error(extra, *missing, what=what)


def error(
    extra: str, *names: str, what: str = "", path: str | None = None
) -> UserError:
    """Returns the error about packages that are missing or fail to import.

    Args:
        extra, *names, what: see `check`.
        path: str or None. The file that needs the packages.
    """
    where = f"{what}: " if what else ""
    return UserError(
        f"{where}missing packages: {', '.join(names)}",
        path=path,
        fix=f"in the checkout: pip install -r requirements/{extra}.txt",
    )
