"""Token classification as a Keras model: words in, labels out."""

import dataclasses
from collections.abc import Sequence

import keras
import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.labels import Labels
from bert.data.text.array_inputs import ragged, strings
from bert.modeling.task_heads import TOKENS
from bert.models import builders, label_encoder, loading
from bert.models.base import TextModel
from bert.tasks.ner import entities
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.task import TokenClassification


@keras.saving.register_keras_serializable("bert")
class TokenClassifier(TextModel):
    """Token classifier: an encoder with a head that predicts a tag per word.

    Fine-tunes BERT for named entities, parts of speech and other tags of
    words. For inputs of token ids use `bert.token_classifier`; for training
    from the shell use run_ner.py, which writes the same export.

        model = bert.TokenClassifier("model", labels=["O", "B-PER", "I-PER"])
        words, tags = [["Anna", "sees", "Bob"]], [["B-PER", "O", "B-PER"]]
        model.fit(words, tags)
        model.predict([["Anna", "sleeps"]])["labels"]  # [["B-PER", "O"]]
        model.evaluate(words, tags)["f1"]  # 1.0
        model.save("names.keras")  # keras.saving.load_model loads it

    Sentences are a list, an array or a column of lists of words. Tags have
    the same form, with a name or a class index for each word. Entity tags in
    IOB1, BIO, IOBES or BILOU are converted to BIO. Long sentences are split
    into windows, as in run_ner.py. Each sentence is encoded without its
    neighbours, even if the model was fine-tuned with --document_context.

    `predict` returns a dict of columns, with an entry for each sentence:

    - labels: a list of names, one for each word.
    - probabilities: a list of floats, the probabilities of the predicted
      labels, before they become valid BIO.
    - entities: a list of (first word, word after the last, type); only with
      entity labels.

    `evaluate` returns the metrics of run_ner.py, as a dict.

    Args:
        model: str or (Encoder, Tokenizer). Path or name of a model, such as
            "hf://google-bert/bert-base-cased", see `load_encoder`.
        labels: list of str or None. Names of the tags. Other names than the
            model was fine-tuned with get a new head with random weights.
            Default: the labels that the model was fine-tuned with.
        max_length: int or None. Length of the windows in tokens. Default: as
            in the fine-tuning of the model, else 128, or fewer if the model
            has fewer positions.
        doc_stride: int or None. Number of tokens between the starts of two
            windows; 0 means half a window. Default: as in the fine-tuning of
            the model, else 0.
        seed: int. Seed of the initial weights of the head, and of the order
            of the windows. Default: 12345.
        **kwargs: arguments of `keras.Model`.

    Attributes:
        network: the model of `bert.token_classifier`, from token ids to
            logits.
        tokenizer: Tokenizer. The tokenizer of the encoder.
        labels: kind and names of the labels.

    Raises:
        UserError: An argument is invalid, or the model cannot be loaded.
    """

    def __init__(
        self,
        model,
        labels: list | None = None,
        *,
        max_length: int | None = None,
        doc_stride: int | None = None,
        seed: int = 12345,
        **kwargs,
    ):
        network, tokenizer = loading.load_pair(model)
        trained = label_encoder.of_encoder(network, (ENTITIES, ANY, None))
        if trained and not trained.kind:  # Hugging Face does not record it
            kind = entities.kind_of(trained.names)
            trained = dataclasses.replace(trained, kind=kind)
        chosen, given = _chosen(labels, trained)

        recorded = loading.task_of(network) if trained else {}
        network = builders.with_labels(network, TOKENS, chosen, trained, seed)

        usual = recorded.get("max_seq_length", 128)
        length = loading.length_of(network, max_length, usual)
        super().__init__(network, tokenizer, length, seed, **kwargs)
        self.labels, self._given = chosen, given

        half = (length - 2) // 2
        if doc_stride is None:
            doc_stride = min(recorded.get("doc_stride", 0), half)
        if doc_stride not in range(half + 1):
            raise UserError(f"doc_stride={doc_stride}", expected=f"0 to {half}")
        self.doc_stride = doc_stride
        self._describe()

    def call(self, inputs, training=False):
        """Computes logits, float32 [B, S, C], from int32 [B, S] inputs."""
        return self.network(inputs, training=training)["logits"]

    def get_config(self) -> dict:
        """Returns the arguments; `network` and `vocabulary` replace `model`."""
        return super().get_config() | {
            "labels": list(self._given),
            "doc_stride": self.doc_stride,
        }

    def _task(self) -> TokenClassification:
        return TokenClassification(
            self.tokenizer,
            self.labels.names,
            self.labels.kind == ENTITIES,
            self.max_length,
            self.doc_stride,
        )

    def _default_loss(self) -> dict:
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": [
                keras.metrics.SparseCategoricalAccuracy("accuracy")
            ],
        }

    def _zeros(self) -> tuple[NDArray, NDArray]:
        shape = 2, 3, len(self.labels.names)
        return np.zeros(shape[:2], np.int32), np.zeros(shape, np.float32)

    def _examples(self, x, y=None) -> list[Sentence]:
        """Checks words and tags; converts entity tags to BIO."""
        sentences = ragged(x, "words")
        tags = [()] * len(sentences) if y is None else ragged(y, "tags")
        if len(tags) != len(sentences):
            raise UserError(
                f"words of {len(sentences)} sentences, tags of {len(tags)}"
            )

        examples = []
        for i, (words, labels) in enumerate(zip(sentences, tags)):
            if y is not None and len(words) != len(labels):
                raise UserError(
                    f"words[{i}] has {len(words)}, tags[{i}] {len(labels)}",
                    expected="a tag for each word",
                )
            words = strings(words, f"words[{i}]")
            names = self._names(labels, f"tags[{i}]")
            examples.append(Sentence(words, names, [], 0))
        return examples

    def _names(self, tags: Sequence, position: str) -> list[str]:
        """Converts the tags of a sentence to names of labels."""
        number = label_encoder.numbering(self._given)
        positions = [f"{position}[{i}]: " for i in range(len(tags))]
        names = [
            tag
            if isinstance(tag, str) and entities.is_entity_label(tag)
            else self._given[number(tag, at)]
            for tag, at in zip(tags, positions)
        ]
        if self.labels.kind == ENTITIES:
            names = entities.to_bio(names)
        known = label_encoder.numbering(self.labels.names)
        return [self.labels.names[known(*x)] for x in zip(names, positions)]

    def _inputs(self, x) -> list[dict]:
        return [{"words": example.words} for example in self._examples(x)]

    def _columns_of(self, predictions: list[dict]) -> dict:
        words = [x["words"] for x in predictions]
        columns: dict = {
            "labels": [[word["label"] for word in x] for x in words],
            "probabilities": [
                [word["probability"] for word in x] for x in words
            ],
        }
        if self.labels.kind == ENTITIES:
            columns["entities"] = [entities.find(x) for x in columns["labels"]]
        return columns


def _chosen(given, trained: Labels | None) -> tuple[Labels, tuple[str, ...]]:
    """Returns the labels of the network, and the names by class index."""
    if given is not None:
        names = label_encoder.names_of(given)
    elif trained:
        names = trained.names
    else:
        raise UserError("no labels", fix="pass the names of the tags")
    if trained and names == trained.names:
        return trained, names

    # IOB1, IOBES and BILOU have other labels for the same entity types.
    labels = Labels(entities.kind_of(names), names)
    if label := entities.in_lower_case(names):
        log(
            f"warning: the label {label!r} is not read as an entity label; "
            "expected upper case, such as B-PER and O"
        )
    if labels.kind == ENTITIES:
        types = (name[2:] for name in names if name != entities.OUTSIDE)
        bio = tuple(entities.bio_labels(types))
        if set(bio) != set(names):
            labels = Labels(ENTITIES, bio)
    label_encoder.check_order(labels, trained)
    return labels, names
