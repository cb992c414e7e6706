"""Half of a surrogate pair, which no text holds and no UTF-8 can.

JSON may write a character beyond U+FFFF as a pair, "\\ud83d\\ude00"; where a
program has cut text in the middle of one, half is left.
"""

from common.errors import UserError


def check(
    value: str | list, what: str, path: str, line: int | None = None
) -> None:
    """Refuses a string of a JSON file that is no text.

    Args:
        value: the string, or a list with strings in it.
        what: names it in the message.
        path: of its file.
        line: its line in it.

    Raises:
        UserError: it holds half of a surrogate pair.
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
            expected="both halves, or none",
        ) from None
