"""Question answering as a Keras model: answers are spans of a context."""

import dataclasses
from collections.abc import Mapping

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from bert.common import flags
from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.records.examples import Examples
from bert.data.text.array_inputs import objects, strings
from bert.models import arguments, builders, loading
from bert.models.base import TextModel
from bert.tasks.squad import examples as squad
from bert.tasks.squad import settings as squad_settings
from bert.tasks.squad.examples import Answer, SquadExample
from bert.tasks.squad.settings import Settings
from bert.tasks.squad.task import QuestionAnswering

_THRESHOLD = "null_score_diff_threshold"  # flag of `null_threshold`
_PADDING = -1e9  # added to the logits of padding


@keras.saving.register_keras_serializable("bert")
class QuestionAnswerer(TextModel):
    """Question answerer: an encoder with a head that finds answers in contexts.

    Fine-tunes BERT for extractive question answering, as on SQuAD. For inputs
    of token ids use `bert.span_model`; for training from the shell use
    run_squad.py, which writes the same export.

        model = bert.QuestionAnswerer("model")
        x = ["What sees the cat?"], ["The old dog sees the cat."]
        model.fit(x, ["The old dog"])
        model.predict(x)["answer"]  # ["The old dog"]
        model.evaluate(x, ["The old dog"])["exact_match"]  # 100.0
        model.save("answers.keras")  # keras.saving.load_model loads it

    Inputs are a tuple of two columns of strings: questions and contexts. An
    answer is one of these, or a list of them. Training uses the first.

    - A string in the context. Its first occurrence is used.
    - A SQuAD dict: `text` and `answer_start`, each a scalar or a list.
    - "", None or an empty list, for a question without an answer.

    Long contexts are split into windows, as in run_squad.py.

    `predict` returns a dict with:

    - answer: a list of N strings; "" if there was no answer.
    - probability: float32 [N].
    - start, end: int32 [N], character offsets in the context.
    - null_odds: float32 [N], the score of no answer minus the best score of
      an answer.

    `evaluate` returns the metrics of run_squad.py, in percent, as a dict.

    Args:
        model: str or (Encoder, Tokenizer). Path or name of a model, such as
            "hf://google-bert/bert-base-uncased", see `load_encoder`.
        null_threshold: float or None. If it is given, questions may have no
            answer: "" is predicted if null_odds is greater. Default: as in
            the fine-tuning of the model, else every question has an answer.
        max_length: int or None. Length of the windows in tokens. Default: as
            in the fine-tuning of the model, else 384, or fewer if the model
            has fewer positions.
        doc_stride: int or None. Number of tokens between the starts of two
            windows. Default: as in the fine-tuning of the model, else 128.
        max_query_length: int or None. Longest question in tokens. Default: as
            in the fine-tuning of the model, else 64, or half a window if that
            is less.
        max_answer_length: int or None. Longest answer in tokens. Default: as
            in the fine-tuning of the model, else 30.
        n_best_size: int or None. Number of candidates that are compared.
            Default: as in the fine-tuning of the model, else 20.
        seed: int. Seed of the initial weights of the head, and of the order
            of the windows. Default: 12345.
        **kwargs: arguments of `keras.Model`.

    Attributes:
        network: the model of `bert.span_model`, from token ids to logits.
        tokenizer: Tokenizer. The tokenizer of the encoder.
        null_threshold: float or None. See the argument; it can be changed.

    Raises:
        UserError: An argument is invalid, or the model cannot be loaded.
    """

    def __init__(
        self,
        model,
        null_threshold: float | None = None,
        *,
        max_length: int | None = None,
        doc_stride: int | None = None,
        max_query_length: int | None = None,
        max_answer_length: int | None = None,
        n_best_size: int | None = None,
        seed: int = 12345,
        **kwargs,
    ):
        network, tokenizer = loading.load_pair(model)
        if isinstance(network, loading.Encoder):
            network = builders.span_model(network, seed)

        # Arguments have precedence over the settings of the fine-tuning.
        recorded = squad_settings.recorded(getattr(network, "task", None))
        usual = recorded.get("max_seq_length", min(384, tokenizer.max_length))
        length = loading.length_of(network, max_length, usual, 8)
        super().__init__(network, tokenizer, length, seed, **kwargs)

        room = length - 4  # [CLS], two [SEP], a token of the context
        query = recorded.get("max_query_length", min(64, length // 2))
        if max_query_length is None:
            max_query_length = min(query, room)

        given = {
            "doc_stride": doc_stride,
            "max_query_length": max_query_length,
            "max_answer_length": max_answer_length,
            "n_best_size": n_best_size,
        }
        arguments.check_numbers(Settings, **given)
        given = {k: int(x) for k, x in given.items() if x is not None}
        if max_query_length > room:
            raise UserError(
                f"max_query_length={max_query_length}",
                expected=f"at most {room}",
            )

        self._settings = dataclasses.replace(
            Settings(),
            **recorded | given | {"max_seq_length": length},
        )
        if null_threshold is not None:
            self.null_threshold = null_threshold
        self._describe()

    def call(self, inputs, training=False):
        """Computes logits, float32 [B, 2, S], from int32 [B, S] inputs."""
        outputs = self.network(inputs, training=training)
        logits = [outputs["start_logits"], outputs["end_logits"]]

        # The loss does not depend on the length of the batch.
        padding = 1.0 - ops.cast(inputs[feature_names.INPUT_MASK], "float32")
        return ops.stack(logits, 1) + _PADDING * padding[:, None]

    @property
    def null_threshold(self) -> float | None:
        """Null odds above which the prediction is ""; None: never."""
        settings = self._settings
        if settings.version_2_with_negative:
            return settings.null_score_diff_threshold
        return None

    @null_threshold.setter
    def null_threshold(self, threshold: float | None):
        flags.check_argument(Settings, _THRESHOLD, threshold, "null_threshold")
        self._settings = dataclasses.replace(
            self._settings,
            version_2_with_negative=threshold is not None,
            null_score_diff_threshold=float(threshold or 0.0),
        )
        self._describe()

    def get_config(self) -> dict:
        """Returns the arguments; `network` and `vocabulary` replace `model`."""
        settings = self._settings
        return super().get_config() | {
            "null_threshold": self.null_threshold,
            "doc_stride": settings.doc_stride,
            "max_query_length": settings.max_query_length,
            "max_answer_length": settings.max_answer_length,
            "n_best_size": settings.n_best_size,
        }

    def _task(self) -> QuestionAnswering:
        return QuestionAnswering(self.tokenizer, self._settings)

    def _default_loss(self) -> dict:
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        }

    def _zeros(self) -> tuple[NDArray, NDArray]:
        return np.zeros((2, 2), np.int32), np.zeros((2, 2, 8), np.float32)

    def _examples(self, x, y=None) -> list[SquadExample]:
        """Checks questions and contexts, and the form of the answers."""
        if not (isinstance(x, tuple) and len(x) == 2):
            raise UserError(
                f"x is a {type(x).__name__}",
                expected="a tuple of two columns, questions and contexts",
            )
        questions, contexts = (
            strings(column, name)
            for column, name in zip(x, ("questions", "contexts"))
        )
        answers = (
            [None] * len(questions) if y is None else objects(y, "answers")
        )
        sizes = len(questions), len(contexts), len(answers)
        if len(set(sizes)) > 1:
            raise UserError(
                f"{sizes[0]} questions, {sizes[1]} contexts, {sizes[2]} answers"
            )

        examples = []
        for i, (question, context) in enumerate(zip(questions, contexts)):
            answer = _answers_of(answers[i], context, f"answers[{i}]")
            examples.append(
                SquadExample(str(i), question, context, answer, not answer)
            )
            if y is not None and not answer and self.null_threshold is None:
                raise UserError(
                    f"answers[{i}] is {answers[i]!r:.60}",
                    expected="an answer",
                    fix="pass null_threshold=0.0 to the class",
                )
        return examples

    def _inputs(self, x) -> list[dict]:
        return [
            {"question": example.question, "context": example.context}
            for example in self._examples(x)
        ]

    def _encoded(self, rows: list[SquadExample]) -> Examples:
        for example in rows:
            for answer in example.answers[:1]:
                try:
                    squad.check_span(answer, example.context)
                except ValueError as error:
                    raise UserError(
                        f"answers[{example.id}] is {answer.text!r:.60}: {error}"
                    ) from None

        return super()._encoded(rows)

    def _labels_of(self, batch: dict):
        positions = feature_names.START_POSITIONS, feature_names.END_POSITIONS
        return ops.stack([batch[name] for name in positions], 1)

    def _columns_of(self, predictions: list[dict]) -> dict:
        types = {
            "answer": None,
            "probability": np.float32,
            "start": np.int32,
            "end": np.int32,
            "null_odds": np.float32,
        }
        return arguments.columns_of(predictions, types)


def _answers_of(value, context: str, name: str) -> tuple[Answer, ...]:
    """Parses the answers of a question, see `QuestionAnswerer`."""
    if value is None or isinstance(value, float) and value != value:
        return ()
    answers: list[Answer] = []
    try:
        for part in [value] if isinstance(value, str | Mapping) else value:
            if isinstance(part, str):
                pairs = [(part, context.find(part))]
            elif isinstance(part["text"], str):
                pairs = [(part["text"], part["answer_start"])]
            else:
                pairs = zip(part["text"], part["answer_start"], strict=True)
            answers += [Answer(str(x), int(at)) for x, at in pairs if x]
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{name} is {value!r:.60}",
            expected="a string, or a dict of text and answer_start",
        ) from None
    return tuple(answers)
