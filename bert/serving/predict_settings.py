"""Settings of predict.py, which know no TensorFlow."""

import dataclasses
import os

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import RARE, flag
from bert.data import tables
from bert.modeling import openvino_network
from bert.serving import known_exports


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of predict.py."""

    model: str | None = flag(
        None,
        "Folder of the SavedModel, or of its network for OpenVINO.",
        required=True,
        path=True,
    )
    trust_model: bool = flag(
        False,
        "Load a model that you did not export yourself: loading a SavedModel "
        "runs it as a program.",
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
        "serving_default", "Signature to call; all its inputs must be text."
    )
    inputs: tuple[str, ...] | None = flag(
        None, "Names of the inputs, in the order of the fields of a line."
    )
    json: bool = flag(
        False, 'Read lines of JSON objects, such as {"text": "..."}.'
    )
    batch_size: int = flag(
        32, "Maximum number of lines of a batch.", at_least=1
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

    def check(self) -> None:
        """Checks the folder of the model, and the input file.

        Raises:
            UserError: if it contains no model, or a SavedModel of unknown
                source; or there is no such file.
        """
        is_network = openvino_network.is_network(self.model)
        graph = os.path.join(self.model, "saved_model.pb")
        if not (is_network or storage.is_file(graph)):
            raise UserError(
                "no saved_model.pb",
                path=self.model,
                expected="a folder that was written by --export_dir"
                if storage.is_folder(self.model)
                else "an existing folder",
            )

        # Loading runs the graph, so this must come first. A network of
        # OpenVINO is no program.
        if not (
            is_network or self.trust_model or known_exports.is_known(self.model)
        ):
            raise UserError(
                "not among the exports of this user",
                path=self.model,
                fix="loading a SavedModel runs it as a program: if you trust "
                "its source, pass --trust_model",
            )

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
