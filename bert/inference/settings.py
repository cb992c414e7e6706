"""Settings of predict.py. This module does not import TensorFlow."""

import dataclasses
from collections.abc import Sequence

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import RARE, BaseSettings, flag
from bert.common.formats import endings

ENGINES = KERAS, OPENVINO = "keras", "openvino"


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Settings of predict.py."""

    model: str | None = flag(
        None,
        "Folder of a run, an export or a Hugging Face model, or name of a "
        "published model.",
        required=True,
        path=True,
    )
    input_file: str | None = flag(
        None,
        "File with one text per line, JSON lines (.jsonl) or a table (.csv, "
        ".tsv, .parquet). Default: standard input.",
        path=True,
    )
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
    signature: str = flag(
        "serving_default",
        "Input format. For models of run_ner.py, words splits a text only at "
        "white space.",
    )
    engine: str | None = flag(
        None,
        "Inference engine. Default: openvino if it is installed and the model "
        "has an OpenVINO network, unless TensorFlow can use a GPU; else keras.",
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
    strict: bool = flag(False, "Exit with code 2 at the first invalid line.")

    @property
    def reads_table(self) -> bool:
        """Whether the input is read as a table; JSON lines may be one."""
        names = self.text_column, self.text_b_column, self.id_column
        if names != (None, None, None):
            return True
        return endings.format_of(self.input_file or "") in (
            "csv",
            "tsv",
            "parquet",
        )

    def check_signature(self, known: Sequence[str]) -> None:
        """Checks --signature.

        Args:
            known: sequence of str. The signatures of the model.

        Raises:
            UserError: The model does not have the signature.
        """
        if self.signature not in known:
            raise UserError(
                f"no signature {self.signature!r}",
                path=self.model,
                expected=f"one of {', '.join(known)}",
            )

    def ordered(self, inputs: Sequence[str]) -> Sequence[str]:
        """Returns the order of the fields of a line, see --inputs.

        Args:
            inputs: sequence of str. Names of the inputs of the model.

        Raises:
            UserError: --inputs has other names, or choices are not last.
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
            UserError: The file does not exist, or the input has no columns.
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
