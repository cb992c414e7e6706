"""Settings of predict.py, which know no TensorFlow."""

import dataclasses
from collections.abc import Sequence

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import RARE, flag
from bert.data import tables

ENGINES = KERAS, OPENVINO = "keras", "openvino"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of predict.py."""

    model: str | None = flag(
        None,
        "Folder of a run, of an export or of Hugging Face transformers, or "
        "the name of a published model.",
        required=True,
        path=True,
    )
    input_file: str | None = flag(
        None,
        "One text per line, JSON lines (.jsonl) or a table (.csv, .tsv, "
        ".parquet). Default: standard input.",
        path=True,
    )
    text_column: str | None = flag(
        None,
        "Table: column of the text, by name or number from 0; default: named "
        "like the input of the model.",
    )
    text_b_column: str | None = flag(None, "Table: column of the second text.")
    id_column: str | None = flag(
        None, "Table: column of the ids in the answers."
    )
    delimiter: str | None = flag(
        None,
        "Table: delimiter of fields; default: .csv a comma, else tabs.",
        topic=RARE,
    )
    signature: str = flag(
        "serving_default",
        "words: the text is split into words already; for models of "
        "run_ner.py.",
    )
    engine: str | None = flag(
        None,
        "Default: openvino if it is installed, the model has its network and "
        "there is no GPU; else keras.",
        choices=ENGINES,
        topic=RARE,
    )
    inputs: tuple[str, ...] | None = flag(
        None, "Names of the inputs, in the order of the fields of a line."
    )
    json: bool = flag(
        False, 'Read lines of JSON objects, such as {"text": "..."}.'
    )
    batch_size: int = flag(
        256, "Maximum number of lines that are computed at once.", at_least=1
    )
    strict: bool = flag(
        False, "Exit with code 2 at the first line that cannot be answered."
    )

    @property
    def reads_table(self) -> bool:
        """Whether the input has columns; one of JSON lines may have them."""
        names = self.text_column, self.text_b_column, self.id_column
        if names != (None, None, None):
            return True
        return tables.is_table(self.input_file or "")

    def check_signature(self, known: Sequence[str]) -> None:
        """Checks --signature.

        Args:
            known: the signatures of the model.

        Raises:
            UserError: it is another one.
        """
        if self.signature not in known:
            raise UserError(
                f"no signature {self.signature!r}",
                path=self.model,
                expected=f"one of {', '.join(known)}",
            )

    def ordered(self, inputs: Sequence[str]) -> Sequence[str]:
        """The fields of a line in their order, which --inputs may change.

        Args:
            inputs: names of the inputs of the model.

        Raises:
            UserError: --inputs has other names, or choices before the end.
        """
        given = self.inputs or inputs
        is_last = given[-1] == inputs[-1] or inputs[-1] != "choices"
        if sorted(given) != sorted(inputs) or not is_last:
            raise UserError(
                f"--inputs={','.join(given)}",
                path=self.model,
                expected=", ".join(inputs),
            )
        return given

    def check(self) -> None:
        """Checks the input file.

        Raises:
            UserError: there is no such file, or it has no columns.
        """
        path = self.input_file
        if self.reads_table and not path:
            raise UserError(
                "standard input has no columns", fix="pass --input_file"
            )
        if path and not storage.is_file(storage.regular(path)):
            raise UserError(
                "is a folder" if storage.is_folder(path) else "no such file",
                path=path,
                fix="check --input_file",
            )
