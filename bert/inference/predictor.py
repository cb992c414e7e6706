"""Predictor: the only path from examples to predictions, for all tasks.

    examples -> task.encode -> packed rows -> engine -> task.decode

TensorFlow is imported only by the Keras engine and by tasks that tokenize with
TensorFlow.
"""

import math
import os
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Protocol, TypedDict

import msgspec
import numpy as np

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import hub_download, json_files
from bert.common.progress import log
from bert.data import sequence_packing
from bert.data.postprocessing import KINDS
from bert.data.sequences import Encoded, Row, join_pair
from bert.data.text import vocabulary
from bert.inference import ranking
from bert.inference.settings import KERAS, OPENVINO
from bert.modeling import openvino_network
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.openvino_network import Network
from bert.modeling.task_heads import CHOICES, HEADS, SPANS, head_of
from bert.tasks.classification.pipeline import TextClassification
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.pipeline import SIGNATURE, TokenClassification
from bert.tasks.similarity.pipeline import TextEmbedding
from bert.tasks.squad import settings as squad
from bert.tasks.squad.pipeline import QuestionAnswering
from bert.tasks.swag import settings as swag
from bert.tasks.swag.pipeline import CHOICE_TEXTS, MultipleChoice

TASKS = {  # kind in a `task.json` -> task
    **dict.fromkeys(KINDS, TextClassification),
    **dict.fromkeys((ENTITIES, ANY, None), TokenClassification),
    squad.KIND: QuestionAnswering,
    swag.KIND: MultipleChoice,
}
_OF_HEADS = {SPANS: QuestionAnswering, CHOICES: MultipleChoice}


class Task(Protocol):
    """Interface of a task: encodes examples and decodes outputs.

    Attributes:
        head: str or None. Key of `HEADS`, or None for no head.
        inputs: sequence of str. Names of the fields of an example, in order.
        optional_inputs: sequence of str. Names of optional fields.
        signatures: sequence of str. Names of the input formats. The first is
            the default.
        can_rank: bool. Whether the texts of a query get scores, see `ranking`.
        max_length: int. Longest sequence in tokens.
        num_outputs: int or None. Size of the last axis of the outputs.
    """

    head: Any
    inputs: Any
    optional_inputs: Any
    signatures: Any
    can_rank: Any
    max_length: Any
    num_outputs: Any

    def encode(self, examples: list[dict]) -> list[Encoded]:
        """Converts examples to sequences."""

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict]:
        """Converts the outputs of the sequences to predictions."""


class Predictor:
    """Predicts examples with a task and an engine; it is thread-safe.

        predictor = Predictor.open("mails_export")
        predictor([{"text": "win a prize"}])  # [{"label": "spam", ...}]

    Args:
        task: Task. Encodes examples and decodes outputs.
        engine: callable. Computes the outputs of packed rows, see `engines`.
    """

    def __init__(
        self,
        task: Task,
        engine: Callable[[dict[str, np.ndarray]], np.ndarray],
    ):
        self.task, self._engine = task, engine
        kinds: dict[str, Any] = dict.fromkeys(task.inputs, str)
        if CHOICE_TEXTS in kinds:
            kinds[CHOICE_TEXTS] = Annotated[
                list[str], msgspec.Meta(min_length=1)
            ]
        kinds |= dict.fromkeys(task.optional_inputs, NotRequired[str])
        self._type: Any = TypedDict("Example", kinds)

    @classmethod
    def open(cls, path: str, engine: str | None = None) -> "Predictor":
        """Loads a model.

        Args:
            path: str. Folder of a run, an export or a Hugging Face model, or
                name of a published model.
            engine: str or None. "keras" or "openvino". Default: see
                `openvino_network.find_default`.

        Raises:
            UserError: The model is missing or damaged.
        """
        path = hub_download.fetch(path)
        if engine is None:
            network = openvino_network.find_default(path)
            engine = OPENVINO if network else KERAS
        else:
            network = openvino_network.find(path)
        if engine == OPENVINO and network is None:
            raise UserError(
                "no OpenVINO network",
                path=path,
                fix="export it again with --export_openvino=float32",
            )

        log(f"loading {path} ...")
        run: Any
        if engine == OPENVINO:
            run = Network(network)
            model = open_model(network)
            task = task_of(model)
        else:
            model = open_model(path)
            from bert.inference.engines import KerasEngine  # loads TensorFlow

            task = task_of(model, head_of(model.values))
            run = KerasEngine.load(model, task.head)
        log(run.description)
        predictor = cls(task, run)
        predictor.check(model)
        return predictor

    def check(self, model: ModelFolder) -> None:
        """Computes one sequence, and compares the output with the task.

        Args:
            model: ModelFolder. The folder of the model.

        Raises:
            UserError: The number of outputs is not the number of labels, or a
                weight is not finite.
        """
        vocab = model.tokenizer.vocab
        row = join_pair([], [], vocab[vocabulary.CLS], vocab[vocabulary.SEP])
        (output,) = self.compute_rows([row])
        if not np.isfinite(output).all():
            raise UserError(
                "the outputs are not finite",
                path=model.path,
                fix="check the training of the model",
            )
        count = output.shape[-1]
        if self.task.num_outputs not in (None, count):
            raise UserError(
                f"{count} outputs of the network",
                path=model.path,
                expected=f"{self.task.num_outputs}, the labels of "
                f"{checkpoint_files.TASK}",
                fix="restore the file, or export the model again",
            )

    @property
    def has_choices(self) -> bool:
        """Whether the last field of an example is a list of choices."""
        return CHOICE_TEXTS in self.task.inputs

    @property
    def _reads_pairs(self) -> bool:
        inputs = (*self.task.inputs, *self.task.optional_inputs)
        return ranking.TEXT_B in inputs

    @property
    def _is_pooled(self) -> bool:
        head = self.task.head
        return head is not None and HEADS[head].is_pooled

    def parse(self, values: dict, signature: str = "") -> dict:
        """Validates an example or a query, and returns its fields.

        Args:
            values: dict. Decoded JSON; unknown keys are ignored.
            signature: str. One of `task.signatures`, or "" for the first.
                Default: "".

        Raises:
            UserError: A field is missing or has the wrong type, or the model
            does not read the second text.
        """
        reads_text = ranking.TEXT in self.task.inputs
        if ranking.TEXT_B in values and reads_text and not self._reads_pairs:
            raise UserError(
                f"the field {ranking.TEXT_B}",
                expected=f"only {ranking.TEXT}: the model reads one text",
            )
        if ranking.is_query(values) and reads_text:
            if not self.task.can_rank:
                raise ranking.error()
            kind: Any = ranking.Query
            expected = ranking.EXPECTED
        else:
            kind = self._type
            expected = f"an object with strings: {', '.join(self.task.inputs)}"
            if self.has_choices:
                expected += ", the last a list of strings"
        with json_files.reported(expected=expected):
            fields = msgspec.convert(values, kind)
        return self.signed(fields, signature)

    def signed(self, example: dict, signature: str) -> dict:
        """Adds a signature to an example, unless it is the default.

        Args:
            example: dict. Fields of the example.
            signature: str. One of `task.signatures`, or "" for the first.
        """
        if signature in ("", self.task.signatures[0]):
            return example
        return example | {SIGNATURE: signature}

    def __call__(self, examples: list[dict]) -> list[dict]:
        """Predicts examples.

        Args:
            examples: list of dict. Strings with the names of `task.inputs`,
                or queries: `text`, a string, and `texts`, a list.

        Returns:
            a list with a dict of JSON values for each example, see `decode`
            of the task. A query has `ranking`, a list of dicts with index,
            text and score, the best first.

        Raises:
            UserError: The model cannot rank texts.
        """
        return self.with_lengths(examples)[0]

    def with_lengths(self, examples: list[dict]) -> tuple[list[dict], int]:
        """Predicts examples, and counts the truncated ones.

        Args:
            examples: list of dict. See `__call__`.

        Returns:
            (predictions, number of truncated examples).
        """
        encoded = self.encode(examples)
        truncated = sum(x.is_truncated for x in encoded)
        outputs = self.compute(encoded)
        return self.decode(examples, encoded, outputs), truncated

    def encode(self, examples: list[dict]) -> list[Encoded]:
        """Converts examples to sequences.

        Args:
            examples: list of dict. See `__call__`.
        """
        return self.task.encode([x for y in examples for x in self._texts(y)])

    def decode(
        self,
        examples: list[dict],
        encoded: list[Encoded],
        outputs: list[list[np.ndarray]],
    ) -> list[dict]:
        """Converts outputs to predictions.

        Args:
            examples: list of dict. See `__call__`.
            encoded: list of Encoded. The result of `encode`.
            outputs: list of list. The result of `compute`.

        Returns:
            list of dict. See `__call__`.
        """
        predictions = iter(self.task.decode(encoded, outputs))
        results = []
        for example in examples:
            found = [next(predictions) for _ in self._texts(example)]
            if ranking.is_query(example):
                found = [{"ranking": ranking.order(example, found)}]
            results += found
        return results

    def _texts(self, example: dict) -> list[dict]:
        """Returns the examples of a query, or the example itself."""
        if ranking.is_query(example):
            return ranking.rows_of(example, self._reads_pairs)
        return [example]

    def compute(self, encoded: list[Encoded]) -> list[list[np.ndarray]]:
        """Computes the outputs of the sequences of each example.

        Args:
            encoded: list of Encoded. The result of `task.encode`.
        """
        rows = [row for x in encoded for row in x.rows]
        return grouped(encoded, self.compute_rows(rows))

    def compute_rows(self, rows: list[Row]) -> list[np.ndarray]:
        """Computes the outputs of sequences.

        Args:
            rows: list of Row. Ids and segment ids of each sequence.
        """
        return sequence_packing.map_packed(self._engine, rows, self._is_pooled)


def grouped(
    encoded: list[Encoded], outputs: list[np.ndarray]
) -> list[list[np.ndarray]]:
    """Groups the outputs of sequences by example.

    Args:
        encoded: list of Encoded. The examples.
        outputs: list of np.ndarray. Outputs of all their sequences, in order.
    """
    rest = iter(outputs)
    return [[next(rest) for _ in x.rows] for x in encoded]


def open_model(path: str) -> ModelFolder:
    """Opens the folder of a model, or the best checkpoint of a run.

    Args:
        path: str. The folder.

    Raises:
        UserError: The folder has no model.
    """
    best = os.path.join(path, checkpoint_files.BEST)
    model = ModelFolder.open(best if storage.is_folder(best) else path)
    model.check()
    return model


def task_of(model: ModelFolder, head: str | None = None) -> Task:
    """Returns the task of a model, from its files or its head.

    Args:
        model: ModelFolder. The folder of the model.
        head: str or None. Key of `HEADS`, the head in its weights. None: the
            head is missing or unknown. Default: None.

    Raises:
        UserError: The task is unknown.
    """
    kind: Any = None
    if model.task:
        kind = TASKS.get(model.task["kind"])
    elif head in _OF_HEADS:  # transformers does not record their labels
        kind = _OF_HEADS[head]
    elif model.pooling_config:
        kind = TextEmbedding
    if kind:
        return kind.from_model(model)
    raise UserError(
        "no task is recorded: neither labels nor a pooling",
        path=model.path,
        expected=f"{checkpoint_files.TASK} of a fine-tuned model, or the "
        "modules.json of an embedding model",
        fix="see extract_features.py for the embeddings of an encoder",
    )


def json_values(value: Any) -> Any:
    """Rounds the floats of a prediction to six decimals.

    Args:
        value: dict, list, float or other JSON value. The prediction.

    Raises:
        ValueError: A number is not finite.
    """
    if isinstance(value, dict):
        return {k: json_values(x) for k, x in value.items()}
    if isinstance(value, list):
        return [json_values(x) for x in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(value)
    return round(value, 6)
