"""Embeddings of texts: examples -> sequences -> token vectors -> embeddings.

No TensorFlow is imported.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bert.common.atomic import write_whole
from bert.common.formats.json_files import Json
from bert.data import feature_names
from bert.data.pooling import PoolingConfig
from bert.data.records.encoding import Feature
from bert.data.sequences import Encoded
from bert.data.tables import InputFile
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.evaluation import OVERLAP
from bert.tasks.similarity.settings import Settings
from bert.tasks.task import Evaluation, Task, ignore

TEXT, VECTOR = "text", "vector"


class TextGroup(NamedTuple):
    """The T texts of a row, and their score or None."""

    texts: list[str]
    score: float | None


class TextEmbedding(Task[Settings]):
    """Embeddings of texts.

    Args:
        tokenizer: the model's tokenizer.
        pooling_config: pooling, prompts and normalization.
        max_length: int. Longest sequence in tokens; longer texts are
            truncated.
        prompt: str or None. Name of the prompt to put before each text.
            Default: the model's default prompt, if it has one.
        texts: int. T, the texts of a row of a file. Default: 2.
        has_scores: bool. Whether the rows to evaluate have scores. Default:
            False.

    Attributes:
        pooling_config: the argument.
    """

    name = "similarity"
    head, num_outputs = None, None
    pooling_config: PoolingConfig
    can_rank = True
    inputs = (TEXT,)
    compares_before = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        pooling_config: PoolingConfig,
        max_length: int,
        prompt: str | None = None,
        texts: int = 2,
        has_scores: bool = False,
    ):
        pooling_config.check()
        self._tokenizer, self.pooling_config = tokenizer, pooling_config
        self.max_length = max_length
        self._prompt = pooling_config.prompt(prompt)
        self.sequences = texts
        self.metric = "spearman_cosine" if has_scores else "cosine_ndcg@10"
        self.schema = {
            feature_names.LABEL_IDS: Feature("float32"),
            feature_names.IS_REAL_EXAMPLE: Feature(),
            feature_names.TEXT_NUMBERS: Feature(size=texts),
        }

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a model, as recorded in its `modules.json`."""
        pooling = model.pooling_config or PoolingConfig()
        return cls(model.tokenizer, pooling, model.max_length)

    def inputs_of(self, rows: list[TextGroup]) -> list[dict[str, str]]:
        """Returns all texts of rows, as dicts for `encode`."""
        return [{TEXT: text} for row in rows for text in row.texts]

    def num_examples(self, rows: list[TextGroup]) -> int:
        """Number of texts."""
        return sum(len(row.texts) for row in rows)

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to sequences.

        Args:
            examples: dicts of `text`.
        """
        texts = [self._prompt + x[TEXT] for x in examples]
        return self._tokenizer.encode_texts(
            texts, [""] * len(texts), self.max_length
        )

    def records(
        self,
        rows: list[TextGroup],
        report: Callable[[Encoded], None] = ignore,
    ) -> Iterator[dict]:
        """Yields a training record of each row, with T sequences."""
        numbers: dict[tuple[int, ...], int] = {}
        encoded = self.encode_rows(rows)
        for row in rows:
            held = [*itertools.islice(encoded, len(row.texts))]
            for x in held:
                report(x)
            yield {
                feature_names.INPUT_IDS: [x.sequences[0][0] for x in held],
                feature_names.SEGMENT_IDS: [x.sequences[0][1] for x in held],
                feature_names.LABEL_IDS: [row.score or 0.0],
                feature_names.IS_REAL_EXAMPLE: [1],
                feature_names.TEXT_NUMBERS: _numbers(held, numbers),
            }

    def combine(self, encoded: Encoded, outputs: list[NDArray]) -> NDArray:
        """Pools the last layer, float32 [S, H], to an embedding [D]."""
        (x,) = outputs
        return self.pooling_config.embed_one(x)

    def decode(
        self, encoded: Sequence[Encoded], results: Sequence[NDArray]
    ) -> list[dict[str, Json]]:
        """Converts embeddings to predictions.

        Args:
            encoded: N examples.
            results: embeddings, float32 [D].

        Returns:
            a dict for each example: `vector`, a list of D floats.
        """
        return [{VECTOR: x.tolist()} for x in results]

    def score(
        self,
        rows: list[TextGroup],
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
    ) -> Evaluation:
        """Scores embeddings: correlations with scores, or retrieval."""
        found = _scores(rows, encoded, np.stack(results))
        return Evaluation(found, {}, [], [])

    def baselines(
        self,
        rows: list[TextGroup],
        encoded: Sequence[Encoded],
        train: list[TextGroup],
        settings: Settings,
    ) -> dict[str, float]:
        """Scores the overlap of the tokens, without [CLS] and [SEP]."""
        found = _scores(rows, encoded, None)
        return {f"{name}/{OVERLAP}": value for name, value in found.items()}

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
        settings: Settings,
    ) -> list[str]:
        """Writes the cosines of each row; returns the path."""
        x = np.reshape(results, (len(file.rows), self.sequences, -1))
        cosines = (x[:, :1] * x[:, 1:]).sum(-1)  # [N, T - 1]
        lines = ("\t".join(f"{x:.6f}" for x in row) for row in cosines)
        path = os.path.join(folder, "predictions.tsv")
        write_whole(path, "".join(f"{line}\n" for line in lines))
        return [path]


def _scores(
    rows: list[TextGroup],
    encoded: Sequence[Encoded],
    vectors: NDArray | None,
) -> dict[str, float]:
    """Computes the metrics of N rows of T texts.

    Args:
        rows: the rows, with scores or without.
        encoded: their texts, N * T.
        vectors: float32 [N * T, D], their embeddings. None: bags of tokens,
            without [CLS] and [SEP].
    """
    from bert.tasks.similarity import metrics  # takes a second

    numbers = np.reshape(_numbers(encoded, {}), (len(rows), -1))

    # Use the first of equal texts.
    _, first = np.unique(numbers, return_index=True)
    x: metrics.Vectors
    if vectors is None:
        x = metrics.bags([encoded[i].sequences[0][0][1:-1] for i in first])
    else:
        x = vectors[first]
    if rows[0].score is None:
        return metrics.retrieval(x, numbers)
    scores = np.array([row.score for row in rows])
    return metrics.correlations(x, numbers, scores)


def _numbers(
    encoded: Sequence[Encoded], known: dict[tuple[int, ...], int]
) -> list[int]:
    """Returns a number for each text, equal for equal token ids.

    Args:
        encoded: the texts.
        known: dict. Token ids -> number, to which new ones are added.
    """
    keys = [tuple(x.sequences[0][0]) for x in encoded]
    return [known.setdefault(key, len(known)) for key in keys]
