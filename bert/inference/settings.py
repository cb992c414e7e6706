"""Settings of predict.py. This module does not import TensorFlow."""

import dataclasses
from collections.abc import Sequence

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import RARE, changed, flag
from bert.common.jobs.runners import PartSettings
from bert.common.rules import needs
from bert.data.row_settings import RowSettings

ENGINES = KERAS, OPENVINO = "keras", "openvino"


@dataclasses.dataclass(frozen=True)
class Settings(PartSettings, RowSettings):
    """Settings of predict.py."""

    RULES = [needs("output_file", "input_file")]

    model: str = flag(
        None,
        "Folder of a run, an export or a Hugging Face model, or name of a "
        "published model.",
        required=True,
        path=True,
    )
    input_file: str | None = flag(
        None,
        "File with one text per line, JSON lines (.jsonl) or a table (.csv, "
        ".tsv), also with .gz, or .parquet. With --output_file: files and "
        "globs, separated by commas. Default: standard input.",
        path=True,
    )
    output_file: str | None = changed(
        PartSettings,
        "output_file",
        help="File of the predictions, .jsonl or .parquet. A killed run "
        "continues. Default: standard output.",
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
        None,
        "Names of the inputs, in the order of the fields of a line. Default: "
        "text or text, text_b of a Hugging Face classifier; else all inputs.",
    )
    batch_size: int = flag(
        256, "Maximum number of lines that are computed at once.", at_least=1
    )
    strict: bool = flag(False, "Exit with code 2 at the first invalid line.")

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

    def ordered(
        self, inputs: Sequence[str], optional: Sequence[str] = ()
    ) -> Sequence[str]:
        """Returns the order of the fields of a line, see --inputs.

        Args:
            inputs: sequence of str. Names of the inputs of the model.
            optional: sequence of str. Names of inputs that a line may lack.
                Default: no names.

        Raises:
            UserError: --inputs has other names, or choices are not last.
        """
        known = (*inputs, *optional)
        given = self.inputs or known
        named = [name for name in known if name in (*inputs, *given)]
        is_last = given[-1] == inputs[-1] or inputs[-1] != "choices"
        if sorted(given) != sorted(named) or not is_last:
            raise UserError(
                f"--inputs={','.join(given)}",
                path=self.model,
                expected=", ".join(known),
            )
        return given

    def check(self) -> None:
        """Checks the input file.

        Raises:
            UserError: The file does not exist, or the input has no columns.
        """
        path = self.input_file
        if self.reads_table(path) and not path:
            raise UserError(
                "standard input has no columns", fix="pass --input_file"
            )
        if path and self.output_file:
            storage.list_files(path, "input_file")
        elif path and not storage.is_file(storage.regular(path)):
            raise UserError(
                "is a folder" if storage.is_folder(path) else "no such file",
                path=path,
                fix="check --input_file",
            )
