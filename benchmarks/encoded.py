"""Examples as our scripts encode them, for benchmarks and their peers."""

import dataclasses
import pathlib
from typing import Any

from bert.runs import opening
from bert.tasks.classification import inputs
from bert.tasks.classification import settings as classification
from bert.tasks.classification.task import TextClassification
from bert.tasks.squad import settings as squad
from bert.tasks.squad.question_windows import WindowMaker
from bert.tasks.task import Files


def model_flags(model: str) -> dict[str, str]:
    """Flags of the files in a folder of weights.

    Args:
        model: folder with bert_model.ckpt, bert_config.json and vocab.txt, or
            in another layout.
    """
    if not pathlib.Path(model, "bert_config.json").exists():
        return {"init_checkpoint": model}
    return {
        "vocab_file": f"{model}/vocab.txt",
        "bert_config_file": f"{model}/bert_config.json",
        "init_checkpoint": f"{model}/bert_model.ckpt",
    }


def classified(
    task: str, data_dir: str, model: str, max_seq_length: int
) -> tuple[TextClassification, Files]:
    """Reads the files of a task of run_classifier.py.

    Args:
        task: key of `tasks.classification.glue.GLUE_TASKS`.
        data_dir: folder of its files.
        model: as for `model_flags`.
        max_seq_length: S.

    Returns:
        the task, whose `records` are the examples, and its files.
    """
    return read(
        model,
        task_name=task,
        data_dir=data_dir,
        max_seq_length=max_seq_length,
    )


def read(model: str, **changed: Any) -> tuple[TextClassification, Files]:
    """Reads what flags of run_classifier.py name; see `classified`.

    Args:
        model: as for `model_flags`.
        **changed: flags of run_classifier.py.
    """
    with _opened(classification.Settings, model, **changed) as run:
        return inputs.read(run)


def window_maker(model: str, **changed: int) -> WindowMaker:
    """Makes the windows of run_squad.py.

    Args:
        model: as for `model_flags`.
        **changed: flags of run_squad.py.
    """
    with _opened(squad.Settings, model, **changed) as run:
        return WindowMaker(run.tokenizer, run.settings)


def _opened(settings_class: type, model: str, **changed: Any):
    """Opens a run that trains and evaluates, without a folder of its own."""
    settings = dataclasses.replace(
        settings_class(),
        do_train=True,
        do_eval=True,
        dry_run=True,
        **model_flags(model),
        **changed,
    )
    return opening.open_run(settings)
