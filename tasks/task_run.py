"""What run_ner and run_swag do alike: files to rows, then train to export."""

from typing import Protocol

from absl import flags

from common.errors import UserError
from serving import export_folder
from tasks import finetuning, output_dir


class Run(Protocol):
    """A run of a task.

    Attributes:
        tuning: its training.
    """

    tuning: finetuning.FineTuning

    def start(self) -> None:
        """Finds the weights to start from and prepares the folder."""

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""

    def evaluate(self) -> dict[str, float]:
        """Scores of --eval_file."""

    def write_predictions(self, folder: str) -> str:
        """Writes what --predict_file asks for; returns the path."""

    def save_model(self, folder: str) -> None:
        """Writes a SavedModel."""


def wanted_files(values: flags.FlagValues) -> dict[str, str]:
    """Flag -> path of the files that a command line needs.

    Raises:
        UserError: there is nothing to do, or a file is not named.
    """
    wanted = [
        f"{what}_file"
        for what in ("train", "eval", "predict")
        if values[f"do_{what}"].value
        or (what == "eval" and values.do_train and values.eval_steps)
    ]
    if not wanted and not values.export_dir:
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )
    export_folder.check(values.export_dir)
    for name in wanted:
        if not values[name].value:
            raise UserError(f"no --{name}", fix="name the file")
    return {name: values[name].value for name in wanted}


def carry_out(values: flags.FlagValues, run: Run) -> None:
    """Does what the flags ask for, and says what was written."""
    wrote = []
    run.start()
    if values.do_train:
        wrote.append(run.train())
    step = run.tuning.take_best()
    if values.do_eval:
        wrote.append(
            output_dir.write_results(values.output_dir, step, run.evaluate())
        )
    if values.do_predict:
        wrote.append(run.write_predictions(values.output_dir))
    if values.export_dir:
        wrote.append(export_folder.write(values.export_dir, run.save_model))
    if wrote:
        print("wrote " + "\n      ".join(wrote))
