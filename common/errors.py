"""The one error for a user's mistake, told in one line."""


class UserError(ValueError):
    """Something that the user can mend: a path, a flag, a file's content.

    The message reads `path:line: found; expected ...; fix`, with the parts
    that are known. Scripts print it on one line and exit with 2
    (`common.main.run`).

    Args:
        found: what was found, in a few words.
        path: the file or folder that it was found in.
        line: its line number in `path`, from 1.
        expected: what should have been there.
        fix: what to do about it.
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
