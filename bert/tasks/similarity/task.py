"""The task of run_similarity.py: text embeddings for similarity."""

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert.common.atomic import write_whole
from bert.data import features, sequence_packing
from bert.data.records.examples import Examples
from bert.data.sequences import Row
from bert.data.tables import Table
from bert.modeling import checkpoints, task_losses, task_models
from bert.tasks import eval_report, finetuning
from bert.tasks.run_folder import RunFolder
from bert.tasks.similarity import examples, losses, metrics
from bert.tasks.similarity.examples import SCORE, TEXT_NUMBERS
from bert.tasks.similarity.pipeline import TextEmbedding
from bert.tasks.similarity.settings import COSINE
from bert.training.task import Task
from bert.training.trainer import Trainer


def make_task(
    folder: RunFolder,
    tables: dict[str, Table],
) -> Task:
    """Encodes the examples, and makes the task for training.

    Args:
        folder: the folder of the run, with settings and initial model.
        tables: dict, flag of a file -> its rows.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    settings, model = folder.settings, folder.model
    how = settings.pooling_config(model)
    similarity = Similarity(folder, tables)

    # Errors in the data are reported before the network is built.
    encoded, records = None, ""
    if "train_file" in tables:
        count = len(settings.text_columns)
        records = folder.identify(tables["train_file"].sha256)
        encoded = Examples(
            similarity.encode("train_file"), examples.schema(count), count
        )

    hidden_size = model.config.hidden_size
    sizes = settings.sizes(hidden_size, how.size(hidden_size))
    has_scores = "eval_file" in tables and SCORE in tables["eval_file"].cells

    return Task(
        "similarity",
        lambda: task_models.build_similarity_model(
            model.config, how.pooling, settings.random_seed
        ),
        (task_losses.LABELS,),
        task_losses.label_weights,
        losses.sums_of(settings.loss, settings.scale, sizes),
        finetuning.schedule(settings, len(encoded or ())),
        metrics=("loss",),
        records=finetuning.describe(encoded, records),
        metric="eval_spearman_cosine" if has_scores else "eval_cosine_ndcg@10",
        examples=encoded,
        pooling_config=how,
        compares_rows=settings.loss != COSINE,
        validate=similarity.validate,
        evaluate=similarity.evaluate,
        predict=similarity.predict,
        sample=similarity.sample,
        check_network=similarity.check_network,
    )


class Similarity:
    """Evaluation, prediction and export of a run.

    Args:
        folder: the folder of the run, with settings and initial model.
        tables: dict, flag of a file -> its rows.
    """

    def __init__(
        self,
        folder: RunFolder,
        tables: dict[str, Table],
    ):
        settings, model = folder.settings, folder.model
        self._settings, self._model = settings, model
        self._folder, self._tables = folder, tables
        self._how = settings.pooling_config(model)

        # Cached for repeated validations.
        self._held_out = functools.cache(lambda: [*self.encode("eval_file")])

    def encode(self, name: str) -> Iterator[dict]:
        """Yields the features of the rows of a file, given its flag."""
        length = self._settings.max_seq_length
        embedding = TextEmbedding(self._model.tokenizer, self._how, length)
        return examples.encode(self._tables[name], embedding)

    def validate(self, trainer: Trainer) -> dict[str, float]:
        """Scores the evaluation file."""
        rows = self._held_out()
        computed = self._vectors(trainer, rows, "eval_file")
        flat = computed.reshape(-1, computed.shape[-1])
        return _score(self._tables["eval_file"], rows, flat.__getitem__)

    def evaluate(self, trainer: Trainer) -> tuple[dict[str, float], dict]:
        """Scores the evaluation file, with baselines."""
        model, folder = self._model, self._folder
        table, trained = self._tables["eval_file"], trainer.weights()
        result = self.validate(trainer)
        baselines = {eval_report.OVERLAP: _overlap(table, self._held_out())}

        # Baseline: the weights before training.
        trains = self._settings.do_train
        if trains and model.path not in ("", folder.shared):
            checkpoints.assign(trainer.named, model.weights()[0], model.path)
            baselines[eval_report.BEFORE] = self.validate(trainer)
            checkpoints.assign(trainer.named, trained, folder.path)

        return result, {
            "task": "similarity",
            "records": table.path,
            "references": {
                f"{name}/{kind}": value
                for kind, values in baselines.items()
                for name, value in values.items()
            },
        }

    def predict(self, trainer: Trainer) -> list[str]:
        """Writes the cosines of each row of the prediction file."""
        if not self._settings.do_predict:
            return []
        path, name = self._folder.file("predictions.tsv"), "predict_file"
        computed = self._vectors(trainer, self.encode(name), name)
        cosines = (computed[:, :1] * computed[:, 1:]).sum(-1)  # [N, T - 1]
        lines = ("\t".join(f"{x:.6f}" for x in row) for row in cosines)
        write_whole(path, "".join(f"{line}\n" for line in lines))
        return [path]

    def sample(self) -> list[Row]:
        """Tokenized texts of training, else of evaluation."""
        is_trained = "train_file" in self._tables
        return _sequences(
            self.encode("train_file" if is_trained else "eval_file")
        )

    def check_network(self, trainer: Trainer, engine) -> dict[str, float]:
        """Scores an exported network on the evaluation file."""
        rows = self._held_out()
        outputs = sequence_packing.map_packed(engine, _sequences(rows), False)
        vectors = np.stack([self._how.embed_one(x) for x in outputs])
        scores = _score(self._tables["eval_file"], rows, vectors.__getitem__)
        return {k.removeprefix("eval_"): x for k, x in scores.items()}

    def _vectors(
        self, trainer: Trainer, rows: Iterable[dict], name: str
    ) -> np.ndarray:
        """Embeddings of the texts, float32 [N, T, D], L2-normalized."""
        settings, description = self._settings, "evaluated"
        size = settings.eval_batch_size
        if name == "predict_file":
            size, description = settings.predict_batch_size, "predicted"
        total, count = (
            len(self._tables[name].rows),
            len(self._settings.text_columns),
        )
        outputs = trainer.predict(rows, size, description, total, count)
        pooled = np.stack([x["vectors"] for x in outputs])
        return self._how.embed(pooled, None)


def _sequences(rows: Iterable[dict]) -> list[Row]:
    """Token ids and segment ids of all texts of the rows."""
    return [
        pair
        for row in rows
        for pair in zip(row[features.INPUT_IDS], row[features.SEGMENT_IDS])
    ]


def _score(
    table: Table, rows: list[dict], vectors_of: Callable
) -> dict[str, float]:
    """Computes the metrics of a file.

    Args:
        table: the file, with N rows of T texts.
        rows: its features.
        vectors_of: function, int [M] text indices from 0 to N * T - 1 ->
            embeddings of these texts.
    """
    numbers = np.array([row[TEXT_NUMBERS] for row in rows])

    # Use the first of equal texts.
    _, first = np.unique(numbers, return_index=True)
    vectors = vectors_of(first)
    if SCORE in table.cells:
        scores = np.array([row.score for row in table.rows])
        result = metrics.correlations(vectors, numbers, scores)
    else:
        result = metrics.retrieval(vectors, numbers)
    return {f"eval_{name}": value for name, value in result.items()}


def _overlap(table: Table, rows: list[dict]) -> dict[str, float]:
    """Token overlap baseline, without [CLS] and [SEP]."""
    ids = [ids[1:-1] for row in rows for ids in row[features.INPUT_IDS]]
    return _score(
        table, rows, lambda first: metrics.bags([ids[i] for i in first])
    )
