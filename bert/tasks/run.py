"""A run of a training script, as it is before the first step.

`runs.opening` makes it from the settings of the script, without TensorFlow. For
a table or labelled words, `runs.head_start.with_recipe` makes another one,
whose settings follow from the rows.
"""

import dataclasses
import os
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from bert.common.formats.json_files import Json
from bert.data.labels import Labels
from bert.data.text import vocabulary_checks
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats.model_folder import ModelFolder
from bert.training.settings import Training

SettingsT = TypeVar("SettingsT", bound=Training)


class OutputFolder(NamedTuple):
    """The --output_dir of a run, as this process uses it.

    Attributes:
        path: str. Folder where this process writes: --output_dir, or a
            temporary folder for all workers but the first.
        shared: str. --output_dir, which contains the checkpoints.
    """

    path: str
    shared: str

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.path == self.shared

    def file(self, name: str) -> str:
        """Path of a file that this process writes."""
        return os.path.join(self.path, name)


class Trained(NamedTuple):
    """Weights that an earlier command has trained.

    Attributes:
        path: str. Folder or prefix of their checkpoint.
        resumes: bool. Whether they are in --output_dir, so that the run
            continues with their next step. If not, a run that does not train
            evaluates them.
        task_json: dict or None. The `task.json` beside them.
        recorded: dict. The flags that they were trained with; {} if unknown.
    """

    path: str
    resumes: bool
    task_json: dict[str, Json] | None
    recorded: dict[str, Json]


def resumed(trained: Trained | None) -> Trained | None:
    """Returns the weights from which a run resumes; None for a new run."""
    return trained if trained and trained.resumes else None


@dataclasses.dataclass(frozen=True)
class Run(Generic[SettingsT]):
    """A run: its settings, its folder and its first weights.

    Attributes:
        settings: settings of the script, with the folder of a published model
            and with the recorded flags of trained weights.
        output_folder: OutputFolder. Where its files are.
        trained: Trained or None. Weights of an earlier command that the run
            resumes from or evaluates. None: it starts from `model`.
        model: ModelFolder. Initial weights, with config and vocabulary.
        config: BertConfig. Sizes of the network, of `model`; in pre-training,
            of --bert_config_file.
        tokenizer: Tokenizer or None. Tokenizer of `model`; in pre-training, of
            the records, if known.
    """

    settings: SettingsT
    output_folder: OutputFolder
    trained: Trained | None
    model: ModelFolder
    config: BertConfig
    tokenizer: Tokenizer | None

    @property
    def resumed(self) -> Trained | None:
        """The weights from which the run resumes; None for a new run."""
        return resumed(self.trained)

    @property
    def recorded(self) -> dict[str, Json]:
        """The flags that the trained weights were trained with, or {}."""
        return self.trained.recorded if self.trained else {}

    @property
    def evaluated_task_json(self) -> dict[str, Json] | None:
        """The `task.json` of the weights of a run that does not train."""
        trained = None if self.settings.do_train else self.trained
        return trained.task_json if trained else None

    def check_same_labels(self, labels: Labels) -> None:
        """Checks that the checkpoints in the folder have the labels of a run.

        Args:
            labels: Labels. The labels of the run.

        Raises:
            UserError: the checkpoints have other labels.
        """
        # Earlier versions did not record the kind, other tasks no labels.
        if self.resumed and self.resumed.task_json:
            usual = {"kind": labels.kind, "labels": []}
            labels.check_same(
                Labels.of_task(usual | self.resumed.task_json),
                path=self.output_folder.shared,
                fix="pass another --output_dir",
            )

    def warn_of_vocabulary(self, texts: Iterable[str]) -> None:
        """Warns if the vocabulary seems not to match the network or the texts.

        Without a tokenizer, nothing is checked.

        Args:
            texts: iterable of str. Texts of the examples. The first thousand
                are tokenized.
        """
        if self.tokenizer:
            vocabulary_checks.warn(
                self.tokenizer,
                self.config.vocab_size,
                self.model.config_file,
                texts,
                self.model.casing,
            )
