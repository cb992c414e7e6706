"""Reads the input files of run_swag.py."""

from bert.data.tables import InputFile
from bert.tasks import folds
from bert.tasks.run import Run
from bert.tasks.swag import examples
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.settings import Settings
from bert.tasks.swag.task import MultipleChoice
from bert.tasks.task import Files


def read(run: Run[Settings]) -> tuple[MultipleChoice, Files]:
    """Reads the files that the settings require.

    In a fold, rows of a context stay together.

    Args:
        run: Run. The run.

    Returns:
        the task of the run, and its files of `ChoiceExample`s.

    Raises:
        UserError: a file is invalid, see `examples.read`.
    """
    settings = run.settings
    files: dict[str, InputFile[ChoiceExample]] = {}
    for name, path in settings.files.items():
        files[name] = examples.read(path, name != "predict_file")
    rows = [x for file in files.values() for x in file.rows]
    run.warn_of_vocabulary(" ".join([x.context, *x.choices]) for x in rows)

    # C is the maximum number of choices over all files.
    task = MultipleChoice(
        run.model.tokenizer,
        settings.max_seq_length,
        max((len(x.choices) for x in rows), default=2),
    )
    return task, folds.files_of(settings, files, lambda x: x.context)
