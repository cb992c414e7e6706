"""Check for unpaired surrogates, which UTF-8 cannot encode.

JSON may write a character beyond U+FFFF as a pair, "\\ud83d\\ude00"; a program
that truncated the text inside a pair left half of it.
"""

from common.errors import UserError


def check(
    value: str | list, what: str, path: str, line: int | None = None
) -> None:
    """Rejects a string of a JSON file that has an unpaired surrogate.

    Args:
        value: the string, or a list that contains strings.
        what: name of the value in the message.
        path: the file.
        line: line number in the file.

    Raises:
        UserError: a string holds half of a surrogate pair.
    """
    if isinstance(value, list):
        for part in value:
            check(part, what, path, line)
    if not isinstance(value, str) or value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{what} holds half of a surrogate pair, "
            f"\\u{ord(value[error.start]):04x}",
            path=path,
            line=line,
            expected="both halves or neither",
        ) from None
