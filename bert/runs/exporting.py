"""Export of the weights of a run, with their scores and a model card."""

from bert.common.progress import log
from bert.data.tables import InputFile
from bert.export import folder as export_folder
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import model_card
from bert.modeling.formats.model import Model
from bert.runs import scoring
from bert.runs.file_results import FileResults
from bert.runs.scoring import Scored
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.run import Run
from bert.tasks.task import DEV, TRAIN, Files, Task
from bert.training.trainer import Trainer


def export(
    path: str,
    name: str,
    run: Run[FineTuningT],
    files: Files,
    scored: Scored,
    computed: FileResults,
    trainer: Trainer,
) -> None:
    """Writes an export of the weights, with their scores and a card.

    Args:
        path: str. Empty folder to write to.
        name: str. Name of the model, for its card.
        run: Run. The run.
        files: dict. TRAIN, DEV or TEST -> files of the run.
        scored: Scored. Task and scores of the weights.
        computed: FileResults. Results of the files.
        trainer: Trainer. Trainer of the run.
    """
    settings, model, task = run.settings, run.model, scored.task
    step = trainer.weights_step

    tuned = Model(
        path,
        model.config,
        trainer.weights(),
        model.tokenizer.with_max_length(settings.max_seq_length),
        task.to_json() if task.head else None,
        task.pooling_config,
    )
    is_quantized = settings.export_openvino == "int8"
    export_folder.write_model(
        path,
        tuned,
        settings.export_precision,
        settings.export_openvino,
        _sample(files, computed) if is_quantized else (),
    )

    # Another precision may predict differently, so it is evaluated too.
    given = settings.scores.metrics if settings.scores else None
    metrics = scored.metrics if given is None else given
    network = openvino_engine.find(path)
    if network and settings.do_eval and files[DEV]:
        metrics = metrics | _scores_of_network(
            OpenVINOEngine(network), task, files[DEV][0], computed
        )
    if metrics:
        export_folder.write_extra(path, export_folder.METRICS, metrics)
    labelled = files[DEV] or files[TRAIN]
    if example := task.example(labelled[0].rows) if labelled else {}:
        export_folder.write_extra(path, export_folder.EXAMPLE, example)
    model_card.write(
        path,
        name,
        "tensorflow",
        model_card.task_of(trainer.named, task.head is None),
        settings,
        settings.init_checkpoint or run.recorded.get("init_checkpoint"),
        model_card.read_scores(run.output_folder.path, step) or settings.scores,
    )


def _sample(files: Files, computed: FileResults) -> list:
    """Tokenized texts of training, else of evaluation."""
    file = (files[TRAIN] or files[DEV])[0]
    return [y for x in computed.encoded(file) for y in x.sequences]


def _scores_of_network(
    engine: OpenVINOEngine, task: Task, file: InputFile, computed: FileResults
) -> dict[str, float]:
    """Scores an exported network on the evaluation file."""
    exported = scoring.score(task, file, computed, engine)
    found = dict(exported.metrics)
    if exported.predicted:
        trained = scoring.score(task, file, computed).predicted
        pairs = zip(exported.predicted, trained, strict=True)
        found["changed_labels"] = sum(a != b for a, b in pairs)
    shown = " | ".join(f"{name} {x:.4g}" for name, x in found.items())
    log(f"OpenVINO | {shown}")
    return {f"openvino_{name}": x for name, x in found.items()}
