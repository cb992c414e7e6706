"""Packages that only some scripts need."""

import importlib.util

from common.errors import UserError


def check(
    extra: str, *names: str, what: str = "", path: str | None = None
) -> None:
    """Checks that packages are installed.

    Args:
        extra: their requirements file is `requirements-<extra>.txt`.
        names: as they are imported.
        what: the flag that needs them.
        path: the file that needs them.

    Raises:
        UserError: some are missing.
    """
    missing = [x for x in names if importlib.util.find_spec(x) is None]
    if missing:
        where = f"{what}: " if what else ""
        raise UserError(
            f"{where}missing packages: {', '.join(missing)}",
            path=path,
            fix=f"pip install -r requirements-{extra}.txt",
        )
