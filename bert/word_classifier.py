"""A classifier of words: words in, tagged words out, as a Keras model."""

import os
from collections.abc import Iterator, Sequence

import keras
import numpy as np

from bert import encoders, heads, text_labels, text_model, text_windows
from bert.common import flags
from bert.common.errors import UserError
from bert.data import features
from bert.data.label_kinds import Labels
from bert.data.text.columns import ragged, strings
from bert.modeling import task_models
from bert.serving import export_folder, graphs
from bert.tasks.ner import entities, export, task
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.settings import Settings


@keras.saving.register_keras_serializable("bert")
class TokenClassifier(keras.Model):
    """An encoder with a classifier of words: names, parts of speech.

        model = bert.TokenClassifier("model", labels=["O", "B-PER", "I-PER"])
        model.fit([["Anna", "sees", "Bob"]], [["B-PER", "O", "B-PER"]])
        model.predict([["Anna", "sleeps"]])["labels"]  # [["B-PER", "O"]]

    Sentences are lists of words in a list, an array or a column; their tags
    are lists of as many names, or of the numbers from 0 of names. Tags of
    entities, in IOB1, BIO, IOBES or BILOU, become BIO. Long sentences are
    split into windows, as in run_ner.py. Each sentence is read alone, also by
    a model that was fine-tuned with --document_context.

    `predict` returns a dict: labels, a list of names for each sentence;
    probabilities, of the labels, floats; and, if labels are those of entities,
    entities, a list of (first word, word after the last, type). `evaluate`
    returns the metrics of run_ner.py.

    Args:
        model: path or name of a model, as for `load_encoder`; or its encoder
            and tokenizer.
        labels: names of the tags; None: those that the model was fine-tuned
            with; others get a new head.
        max_length: S of the windows; None: as in its fine-tuning, else 128,
            or all positions of a smaller model.
        doc_stride: int. Tokens between the starts of two windows; 0: half a
            window. Default: as in its fine-tuning, else 0.
        seed: of the head's initial weights, and of the order of the windows.

    Attributes:
        network: the model of `bert.token_classifier`, from ids to logits.
        tokenizer: a `bert.Tokenizer`.
        labels: kind and names of the labels.

    Raises:
        UserError: an argument is invalid, or the model cannot be loaded.
    """

    _has_schedule, _token_axis = True, 1

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
        super().__init__(**kwargs)
        network, self.tokenizer = encoders.load_pair(model)
        trained = _labels_of(network)
        self.labels, self._given = _chosen(labels, trained)

        # The head of the fine-tuned model is kept if its labels are.
        recorded: dict = {}
        if trained:
            checkpoint = network.checkpoint
            recorded = checkpoint.task
        if trained and trained != self.labels:
            text_labels.say_new_head(checkpoint.path, trained, self.labels)
            network = task_models.build_token_classifier(
                checkpoint.config, self.labels.size, seed, network
            )
        elif isinstance(network, encoders.Encoder):
            network = heads.token_classifier(network, self.labels.size, seed)

        self.network, self.seed = network, seed
        usual = recorded.get("max_seq_length", 128)
        self.max_length = text_model.length(network, max_length, usual)
        half = (self.max_length - 2) // 2
        if doc_stride is None:
            doc_stride = min(recorded.get("doc_stride", 0), half)
        if not 0 <= doc_stride <= half:
            raise UserError(f"doc_stride={doc_stride}", expected=f"0 to {half}")
        self.doc_stride = doc_stride
        network.task = {  # for `bert.save`
            "kind": self.labels.kind,
            "labels": list(self.labels.names),
            "max_seq_length": self.max_length,
            "doc_stride": self.doc_stride,
        }
        self._settings = flags.replace(
            Settings(),
            max_seq_length=self.max_length,
            doc_stride=self.doc_stride,
        )
        self._featurizer = task.featurizer_of(
            self.tokenizer, self.labels.names, self._settings
        )
        self.jit_compile = False  # else each length is compiled
        self.built = True

    def call(self, inputs, training=False):
        """The encoder's inputs, int32 [B, S] -> logits, float32 [B, S, C]."""
        return self.network(inputs, training=training)["logits"]

    def export(self, filepath: str) -> None:
        """Writes the SavedModel that run_ner.py writes, to a new folder.

        Raises:
            UserError: the folder is not empty or cannot be written, or the
                weights are quantized.
        """
        filepath, labels = os.fspath(filepath), list(self.labels.names)
        with text_model.source(self, filepath) as source:
            labeller = export.Labeller(
                source,
                self._settings,
                labels,
                self.labels.kind == ENTITIES,
                source.values,
            )
            export_folder.write(
                filepath, lambda folder: graphs.save(labeller, folder, "words")
            )

    def get_config(self) -> dict:
        """The arguments, with `network` and `vocabulary` for `model`."""
        return text_model.get_config(self) | {
            "labels": list(self._given),
            "doc_stride": self.doc_stride,
        }

    save = text_model.save
    compile = text_model.compile_model
    compile_from_config = task_models.Classifier.compile_from_config
    get_compile_config = text_model.get_compile_config
    from_config = classmethod(text_model.from_config)
    train_on_batch = text_model.train_on_batch
    fit, evaluate = text_windows.fit, text_windows.evaluate
    predict, predict_step = text_windows.predict, text_windows.predict_step
    predict_on_batch = text_windows.predict_on_batch
    _columns = text_windows.columns

    def _usual_loss(self) -> dict:
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": [
                keras.metrics.SparseCategoricalAccuracy("accuracy")
            ],
        }

    def _examples(self, x, y=None) -> list[Sentence]:
        """Checks words, and their tags; those of entities become BIO."""
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
            examples.append(Sentence(words, self._names(labels), [], 0))
        return examples

    def _names(self, tags: Sequence) -> list[str]:
        """Names of the labels of a sentence."""
        number = text_labels.numbering(self._given)
        names = [
            tag
            if isinstance(tag, str) and entities.is_entity_label(tag)
            else self._given[number(tag)]
            for tag in tags
        ]
        if self.labels.kind == ENTITIES:
            names = entities.to_bio(names)
        known = text_labels.numbering(self.labels.names)
        return [self.labels.names[known(name)] for name in names]

    def _windows(self, sentences: list[Sentence]) -> Iterator[dict]:
        return self._featurizer.featurize(sentences)

    def _labeled(self, sentences: list[Sentence]) -> tuple:
        windows = [*self._windows(sentences)]
        return (
            text_windows.rows(windows),
            [np.array(x[features.LABEL_IDS], np.int32) for x in windows],
            [np.array(x[features.LABEL_WEIGHTS], np.float32) for x in windows],
        )

    def _read(self, sentences, windows, logits) -> tuple[list, list]:
        """The answers of all words, and the labels of each sentence."""
        outputs = ({"logits": x} for x in logits)
        answers = [*task.read_answers(windows, outputs, self.labels.names)]
        labels = (label for label, *_ in answers)
        is_entities = self.labels.kind == ENTITIES
        return answers, task.by_sentence(sentences, labels, is_entities)

    def _answers(self, sentences, windows, logits) -> dict:
        answers, labels = self._read(sentences, windows, logits)
        rest = iter(answers)
        answer = {
            "labels": labels,
            "probabilities": [[next(rest)[2] for _ in x] for x in labels],
        }
        if self.labels.kind == ENTITIES:
            answer["entities"] = [entities.find(x) for x in labels]
        return answer

    def _scores(self, sentences, windows, logits) -> dict[str, float]:
        answers, labels = self._read(sentences, windows, logits)
        gold = [sentence.labels for sentence in sentences]
        return task.score(gold, labels, answers, self.labels.kind == ENTITIES)


def _labels_of(encoder) -> Labels | None:
    """The labels that an encoder was fine-tuned with, if it was."""
    found = getattr(getattr(encoder, "checkpoint", None), "task", None)
    if not found or found["kind"] not in (ENTITIES, ANY, None):
        return None

    # Hugging Face names no kind: it follows from the labels.
    names = tuple(found["labels"])
    return Labels(found["kind"] or entities.kind_of(names), names)


def _chosen(given, trained: Labels | None) -> tuple[Labels, tuple[str, ...]]:
    """The labels of the network, and the names that numbers stand for."""
    if given is None and trained is None:
        raise UserError("no labels", fix="pass the names of the tags")
    names = trained.names if given is None else text_labels.names_of(given)
    if trained and names == trained.names:
        return trained, names

    # Other schemes have other labels of the same types.
    labels = Labels(entities.kind_of(names), names)
    if labels.kind == ENTITIES:
        types = (name[2:] for name in names if name != entities.OUTSIDE)
        bio = tuple(entities.bio_labels(types))
        if set(bio) != set(names):
            labels = Labels(ENTITIES, bio)
    text_labels.check_order(labels, trained)
    return labels, names
