"""The task of run_similarity.py: vectors whose cosine is a similarity."""

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert.common.atomic import write_whole
from bert.common.progress import say
from bert.data import features
from bert.data.records.examples import Examples
from bert.modeling import checkpoints, task_losses, task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs, openvino_export, openvino_model
from bert.tasks import eval_report, finetuning, training_data
from bert.tasks.run_folder import RunFolder
from bert.tasks.similarity import examples, export, losses, metrics
from bert.tasks.similarity.examples import TEXT_NUMBERS, Table
from bert.tasks.similarity.settings import COSINE, Settings
from bert.training.run import Run
from bert.training.task import Task


def make_task(
    settings: Settings,
    model: ModelFolder,
    folder: RunFolder,
    tables: dict[str, Table],
) -> Task:
    """Encodes the examples, and says what is computed with them.

    Args:
        settings: settings of the script.
        model: config, tokenizer and the initial weights.
        folder: the folder of the run.
        tables: flag of a file -> its rows.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    shared, count = settings.finetuning, len(settings.text_columns)
    how = settings.vectors(model)

    def encode(name: str) -> Iterator[dict]:
        length = shared.max_seq_length
        return examples.encode(
            tables[name], model.tokenizer, length, how.prompt(None)
        )

    @functools.cache  # a validation reads them again
    def held_out() -> list[dict]:
        return [*encode("eval_file")]

    sizes = settings.sizes(model.config.hidden_size)
    encoded, records = None, ""
    if "train_file" in tables:
        records = training_data.identify(folder.shared, settings.train_file)
        encoded = Examples(encode("train_file"), examples.schema(count), count)

    def vectors(run: Run, rows: Iterable[dict], name: str) -> np.ndarray:
        """float32 [N, T, H], of length 1."""
        size, what = shared.training.eval_batch_size, "evaluated"
        if name == "predict_file":
            size, what = shared.predict_batch_size, "predicted"
        total = len(tables[name].texts)
        outputs = run.outputs(rows, size, what, total, count)
        return metrics.unit(np.stack([x["vectors"] for x in outputs]))

    def validate(run: Run) -> dict[str, float]:
        computed = vectors(run, held_out(), "eval_file")
        flat = computed.reshape(-1, computed.shape[-1])
        return _score(tables["eval_file"], held_out(), flat.__getitem__)

    def evaluate(run: Run) -> tuple[dict[str, float], dict]:
        table, trained = tables["eval_file"], run.weights()
        result = validate(run)
        references = {eval_report.OVERLAP: _overlap(table, held_out())}

        # Vectors of the weights that training began with.
        if shared.training.do_train and model.path not in ("", folder.shared):
            checkpoints.assign(run.named, model.weights()[0], model.path)
            references[eval_report.BEFORE] = validate(run)
            checkpoints.assign(run.named, trained, folder.path)
        return result, {
            "task": "similarity",
            "records": table.path,
            "references": {
                f"{name}/{kind}": value
                for kind, values in references.items()
                for name, value in values.items()
            },
        }

    def predict(run: Run) -> list[str]:
        if not shared.do_predict:
            return []
        path = folder.file("predictions.tsv")
        computed = vectors(run, encode("predict_file"), "predict_file")
        cosines = (computed[:, :1] * computed[:, 1:]).sum(-1)  # [N, T - 1]
        lines = ("\t".join(f"{x:.6f}" for x in row) for row in cosines)
        write_whole(path, "".join(f"{line}\n" for line in lines))
        return [path]

    def save(run: Run, path: str) -> dict[str, float]:
        weights = run.weights()
        graphs.save(export.Embedder(model, settings, weights), path)
        if not settings.export_openvino:
            return {}

        # Rounding to int8 is calibrated with texts, best those of training.
        limit, known = shared.max_seq_length, []
        if settings.export_openvino == "int8":
            name = "train_file" if "train_file" in tables else "eval_file"
            known = openvino_export.sample(_sequences(encode(name)))
        bert = conversion.Bert(
            path,
            model.config,
            weights,
            [],
            model.tokenizer.with_max_length(limit),
            vectors=how,
        )
        network = openvino_export.write(
            path, bert, settings.export_openvino, known
        )
        if not shared.do_eval:
            return {}

        # Another precision may answer differently, so it is scored too.
        rows = held_out()
        others = openvino_model.text_vectors(
            network, _sequences(rows), limit, how
        )
        scores = _score(tables["eval_file"], rows, others.__getitem__)
        shown = " | ".join(f"{name} {x:.4g}" for name, x in scores.items())
        say(f"OpenVINO, {settings.export_openvino} | {shown}")
        return {
            name.replace("eval_", "openvino_", 1): x
            for name, x in scores.items()
        }

    has_scores = (
        "eval_file" in tables and tables["eval_file"].scores is not None
    )
    return Task(
        "similarity",
        lambda: task_models.build_similarity_model(
            model.config, how.pooling, shared.training.random_seed
        ),
        (task_losses.LABELS,),
        task_losses.label_weights,
        losses.sums_of(settings.loss, settings.scale, sizes),
        finetuning.schedule(shared, len(encoded or ())),
        measures=("loss",),
        records=training_data.describe(encoded, records),
        metric="eval_spearman_cosine" if has_scores else "eval_cosine_ndcg@10",
        examples=encoded,
        vectors=how,
        compares_rows=settings.loss != COSINE,
        validate=validate,
        evaluate=evaluate,
        predict=predict,
        export=save,
    )


def _sequences(rows: Iterable[dict]) -> list[tuple[list[int], list[int]]]:
    """Ids and segment ids of all texts of rows."""
    return [
        pair
        for row in rows
        for pair in zip(row[features.INPUT_IDS], row[features.SEGMENT_IDS])
    ]


def _score(
    table: Table, rows: list[dict], vectors_of: Callable
) -> dict[str, float]:
    """Metrics of a file.

    Args:
        table: the file, with N rows of T texts.
        rows: its features.
        vectors_of: int [M], of 0 to N * T - 1 -> vectors of these texts.
    """
    numbers = np.array([row[TEXT_NUMBERS] for row in rows])

    # Of equal texts the first one counts.
    _, first = np.unique(numbers, return_index=True)
    vectors = vectors_of(first)
    if table.scores is None:
        result = metrics.retrieval(vectors, numbers)
    else:
        result = metrics.correlations(vectors, numbers, table.scores)
    return {f"eval_{name}": value for name, value in result.items()}


def _overlap(table: Table, rows: list[dict]) -> dict[str, float]:
    """Metrics of the words that texts share; [CLS] and [SEP] are in all."""
    ids = [ids[1:-1] for row in rows for ids in row[features.INPUT_IDS]]
    return _score(
        table, rows, lambda first: metrics.bags([ids[i] for i in first])
    )
