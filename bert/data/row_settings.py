"""Settings of scripts that read rows: lines of text or JSON, or tables."""

import dataclasses

from bert.common.flags import RARE, BaseSettings, flag
from bert.common.formats import endings


@dataclasses.dataclass(frozen=True)
class RowSettings(BaseSettings):
    """Columns and format of the rows."""

    text_column: str | None = flag(
        None,
        "Table: column of the text, as name or number from 0. Default: the "
        "column with the name of the model's input.",
    )
    text_b_column: str | None = flag(
        None,
        "Table: column of the second text, of models that read two. Default: "
        "the column with the name of the model's second input.",
    )
    id_column: str | None = flag(
        None, "Table: column of ids, which the output repeats."
    )
    delimiter: str | None = flag(
        None,
        "Table: delimiter of the fields. Default: a comma for .csv, else a "
        "tab.",
        topic=RARE,
    )
    json: bool = flag(
        False, 'Read lines of JSON objects, such as {"text": "..."}.'
    )

    def reads_table(self, path: str | None) -> bool:
        """Returns whether a file is read as a table; JSON lines may be one.

        Args:
            path: str or None. The file; None for standard input.
        """
        names = self.text_column, self.text_b_column, self.id_column
        is_table = endings.format_of(path or "") in endings.TABLES
        return is_table or names != (None, None, None)

    def reads_json(self, path: str | None) -> bool:
        """Returns whether each line of a file is a JSON object.

        Args:
            path: str or None. The file; None for standard input.
        """
        return self.json or endings.format_of(path or "") == "json"
