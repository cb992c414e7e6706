"""Reads the input files of run_squad.py."""

from bert.common.progress import log
from bert.tasks import folds
from bert.tasks.run import Run
from bert.tasks.squad import examples
from bert.tasks.squad.examples import NOTHING, QuestionFile
from bert.tasks.squad.settings import Settings
from bert.tasks.squad.task import QuestionAnswering
from bert.tasks.task import Files


def read(run: Run[Settings]) -> tuple[QuestionAnswering, Files]:
    """Reads the files that the settings require.

    In a fold, questions on the same article stay together.

    Args:
        run: Run. The run.

    Returns:
        the task of the run, and its files of `SquadExample`s.

    Raises:
        UserError: a file is missing, invalid, or of the other version.
    """
    settings = run.settings
    files: dict[str, QuestionFile] = {}
    version_2 = settings.version_2_with_negative
    for flag, kind in settings.needed.items():
        path = getattr(settings, flag)
        file = files[flag] = examples.read(path, kind)
        if kind != NOTHING:
            examples.check_version(file, version_2)
        elif not version_2 and any(x.impossible for x in file.rows):
            log(
                f"warning: {path} has unanswerable questions, but every "
                "question gets an answer; see --version_2_with_negative"
            )
    run.warn_of_vocabulary(
        f"{x.question} {x.context}"
        for file in files.values()
        for x in file.rows
    )

    # The same file is evaluated and predicted.
    asked = files.pop("predict_file", None)
    if asked and settings.needed["predict_file"] != NOTHING:
        files["eval_file"] = asked
    if asked and settings.do_predict:
        files["predict_file"] = asked
    task = QuestionAnswering(run.model.tokenizer, settings)
    return task, folds.files_of(settings, files, lambda x: x.title or x.context)
