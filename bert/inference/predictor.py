"""Predictor: the only path from examples to predictions, for all tasks.

    examples -> task.encode -> packed rows -> engine -> outputs
    outputs -> task.combine -> results -> task.decode -> predictions

Scripts score the results of labelled examples with `task.score`. TensorFlow is
imported only by the Keras engine.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.common.formats.json_files import Json
from bert.common.progress import Progress, log
from bert.data import sequence_packing
from bert.data.labels import KINDS
from bert.data.sequences import Encoded, TaskResult, TokenSequence, join_pair
from bert.data.text import vocabulary
from bert.inference import ranking
from bert.inference.example_parsing import reads_pairs
from bert.inference.settings import KERAS
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import (
    CHOICES,
    HEADS,
    MASKED_LM,
    SPANS,
    head_of,
    heads_of,
)
from bert.tasks.classification.task import TextClassification
from bert.tasks.fill_mask.task import MaskedWords
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.task import SIGNATURE, TokenClassification
from bert.tasks.similarity.task import TextEmbedding
from bert.tasks.squad import settings as squad
from bert.tasks.squad.task import QuestionAnswering
from bert.tasks.swag import settings as swag
from bert.tasks.swag.task import MultipleChoice
from bert.tasks.task import Task

TASKS: dict[str | None, type[Task]] = {  # kind in a `task.json` -> task
    **dict.fromkeys(KINDS, TextClassification),
    **dict.fromkeys((ENTITIES, ANY, None), TokenClassification),
    squad.KIND: QuestionAnswering,
    swag.KIND: MultipleChoice,
}
_OF_HEADS: dict[str, type[Task]] = {
    SPANS: QuestionAnswering,
    CHOICES: MultipleChoice,
}


# And the index of the token that a head reads.
Sequence = tuple[TokenSequence, int]
Compute = Callable[[dict[str, NDArray]], NDArray]  # packed rows -> outputs


class Engine(Protocol):
    """A class of `modeling.engines`: computes the outputs of packed rows."""

    description: str

    def __call__(self, inputs: dict[str, NDArray], /) -> NDArray:
        """Feature name -> int32 [R, W]; returns the outputs."""


class Predictor:
    """Predicts examples with a task and an engine; it is thread-safe.

        predictor = Predictor.open("mails_export")
        predictor([{"text": "win a prize"}])  # [{"label": "spam", ...}]

    Args:
        task: Task. Encodes examples and decodes outputs.
        engine: callable. Computes the outputs of packed rows; see
            `modeling.engines`.
        batch_tokens: int. Maximum number of tokens of a batch; at least 4,096
            are used. Default: 4,096.
        batches: int. Number of batches whose examples are sorted by length
            together. Default: 8.
    """

    def __init__(
        self,
        task: Task,
        engine: Compute,
        batch_tokens: int = 0,
        batches: int = 8,
    ):
        self.task, self._engine = task, engine
        self._batch_tokens = max(sequence_packing.MAX_TOKENS, batch_tokens)
        self._sorted_tokens = batches * self._batch_tokens

    @classmethod
    def open(
        cls,
        path: str,
        engine: str | None = None,
        num_threads: int | None = None,
    ) -> "Predictor":
        """Loads a model.

        Args:
            path: str. Folder of a run, an export or a Hugging Face model, or
                name of a published model.
            engine: str or None. See `network_of`. Default: None.
            num_threads: int or None. Number of threads of OpenVINO. Default:
                None, one per core.

        Raises:
            UserError: The model is missing or damaged.
        """
        path = downloads.fetch(path)
        network = network_of(path, engine)
        log(f"loading {path} ...")

        run: Engine
        if network:
            run = OpenVINOEngine(network, num_threads)
            model = open_model(network)
            task = task_of(model)
        else:
            model = open_model(path)
            names = model.values
            head = head_of(names)
            if head is None and MASKED_LM in heads_of(names):
                head = MASKED_LM
            task = task_of(model, head)
            run = load_keras(model, task.head)

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
        (output,) = self.compute_sequences([(row, 0)])
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
    def _is_pooled(self) -> bool:
        head = self.task.head
        if head is None:
            return False
        return head == MASKED_LM or HEADS[head].is_pooled

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
        results = [result for _, result in self.compute(encoded)]
        return self.decode(examples, encoded, results), truncated

    def encode(self, examples: list[dict]) -> list[Encoded]:
        """Converts examples to sequences.

        Args:
            examples: list of dict. See `__call__`.
        """
        return self.task.encode([x for y in examples for x in self._texts(y)])

    def decode(
        self, examples: list[dict], encoded: list[Encoded], results: list
    ) -> list[dict]:
        """Converts results to predictions.

        Args:
            examples: list of dict. See `__call__`.
            encoded: list of Encoded. The result of `encode`.
            results: list. Results of the encoded examples.

        Returns:
            list of dict. See `__call__`.
        """
        predictions = iter(self.task.decode(encoded, results))
        shown = []
        for example in examples:
            found = [next(predictions) for _ in self._texts(example)]
            if ranking.is_query(example):
                found = [{"ranking": ranking.order(example, found)}]
            shown += found
        return shown

    def _texts(self, example: dict) -> list[dict]:
        """Returns the examples of a query, or the example itself."""
        if ranking.is_query(example):
            return ranking.rows_of(example, reads_pairs(self.task))
        return [example]

    def compute(
        self,
        encoded: Iterable[Encoded],
        report: Callable[[int], None] = lambda done: None,
    ) -> Iterator[tuple[Encoded, TaskResult]]:
        """Computes the results of examples, in bounded memory.

        Args:
            encoded: iterable of Encoded. Results of `task.encode`, which are
                read lazily.
            report: function. Called with the number of examples done.

        Yields:
            each example with its result, see `combine` of the task.
        """
        done, examples = 0, iter(encoded)
        while held := _some(examples, self._sorted_tokens):
            outputs = self.compute_sequences(sequences_of(held))
            yield from zip(held, self.combine(held, outputs))
            done += len(held)
            report(done)

    def compute_all(
        self, examples: list[dict], description: str
    ) -> list[tuple[Encoded, TaskResult]]:
        """Computes the results of examples, and shows the progress.

        Args:
            examples: list of dict. Values of `task.inputs`.
            description: str. Name of the work.

        Returns:
            list of (example, result), see `compute`.
        """
        progress = Progress(description, len(examples), "texts")
        encoded = self.task.encode_all(examples)
        return [*self.compute(encoded, progress.update)]

    def compute_sequences(self, sequences: list[Sequence]) -> list[NDArray]:
        """Computes the outputs of sequences.

        Args:
            sequences: list of Sequence. See `sequences_of`.

        Returns:
            list of arrays. See `sequence_packing.map_packed`. If an output is
            not finite, all outputs of its sequence are NaN: no prediction
            then has finite probabilities.
        """
        computed = sequence_packing.map_packed(
            self._engine,
            [row for row, _ in sequences],
            self._is_pooled,
            self._batch_tokens,
            [position for _, position in sequences],
        )
        return [
            x if np.isfinite(x).all() else np.full_like(x, np.nan)
            for x in computed
        ]

    def combine(
        self, encoded: list[Encoded], outputs: Iterable[NDArray]
    ) -> list:
        """Combines the outputs of sequences to the results of examples.

        Args:
            encoded: list of Encoded. The examples.
            outputs: iterable of np.ndarray. Outputs of all their sequences, in
                order.
        """
        rest = iter(outputs)
        return [
            self.task.combine(x, [*itertools.islice(rest, len(x.sequences))])
            for x in encoded
        ]


def sequences_of(encoded: Iterable[Encoded]) -> list[Sequence]:
    """Returns the sequences of examples, with the token that a head reads."""
    return [
        pair
        for x in encoded
        for pair in zip(x.sequences, x.positions or [0] * len(x.sequences))
    ]


def _some(examples: Iterator[Encoded], most: int) -> list[Encoded]:
    """Takes the next examples, until they have `most` tokens or more."""
    held, tokens = [], 0
    for x in examples:
        held.append(x)
        tokens += sum(len(ids) for ids, _ in x.sequences)
        if tokens >= most:
            break
    return held


def network_of(path: str, engine: str | None) -> str | None:
    """Returns the folder of the OpenVINO network that computes a model.

    Args:
        path: str. Folder of the model.
        engine: str or None. "keras" or "openvino". None: see
            `openvino_engine.find_default`.

    Returns:
        str or None. None if Keras computes the model.

    Raises:
        UserError: The model has no network.
    """
    if engine is None:
        return openvino_engine.find_default(path)
    if engine == KERAS:
        return None
    network = openvino_engine.find(path)
    if network is None:
        raise UserError(
            "no OpenVINO network",
            path=path,
            fix="export it again with --export_openvino=float32",
        )
    return network


def load_keras(
    model: ModelFolder, head: str | None = None, **options
) -> Engine:
    """Loads a model into Keras. Imports TensorFlow, which takes seconds.

    Args:
        model, head, **options: See `KerasEngine.load`.

    Returns:
        KerasEngine. The model.
    """
    from bert.modeling.engines.keras_engine import KerasEngine

    return KerasEngine.load(model, head, **options)


def open_model(path: str) -> ModelFolder:
    """Opens the folder of a model or of a run, and checks its files.

    Args:
        path: str. The folder, or the name of a published model.

    Raises:
        UserError: The folder has no model.
    """
    model = ModelFolder.open(path)
    model.resolve()  # a folder without a model has no vocabulary either
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
    task_class: type[Task] | None = None
    if model.task_json:
        task_class = TASKS.get(model.task_json["kind"])
    elif head in _OF_HEADS:  # transformers does not record their labels
        task_class = _OF_HEADS[head]
    elif model.pooling_config:
        task_class = TextEmbedding
    elif head == MASKED_LM:
        task_class = MaskedWords
    if task_class:
        return task_class.from_model(model)
    raise UserError(
        "no task is recorded: neither labels nor a pooling",
        path=model.path,
        expected=f"{checkpoint_files.TASK} of a fine-tuned model, or the "
        "modules.json of an embedding model",
        fix="see extract_features.py for the embeddings of an encoder",
    )


def json_values(value: Json) -> Json:
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
