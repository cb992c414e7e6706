"""The error for mistakes of the user, with a one-line message."""


class UserError(ValueError):
    """A mistake that the user can fix: a path, a flag, a file's content.

    The message is `path:line: found; expected ...; fix`, with the parts that
    are known. Scripts print it on one line and exit with code 2
    (`common.main.run`).

    Args:
        found: the mistake, in a few words.
        path: the file or folder with the mistake.
        line: line number in `path`, from 1.
        expected: the correct content or value.
        fix: advice to the user.
    """

    exit_code = 2

    def __init__(
        self,
        found: str,
        *,
        path: str | None = None,
        line: int | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ):
        where = ":".join(str(part) for part in (path, line) if part is not None)
        message = f"{where}: {found}" if where else found
        if expected:
            message += f"; expected {expected}"
        if fix:
            message += f"; {fix}"
        super().__init__(" ".join(message.split()))
