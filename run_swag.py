r"""Fine-tunes a BERT to choose what follows: SWAG, and your own choices.

    python run_swag.py --train_file=swag/train.csv --eval_file=swag/val.csv \
        --predict_file=swag/test.csv --do_train --do_eval --do_predict \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=swag

Files are SWAG's CSV, or JSON lines with two choices or more:

    {"context": "She opens the door.", "choices": ["She ...", "The ..."],
     "label": 0}
"""

import dataclasses
import os
import sys
from collections.abc import Iterator

from absl import flags

from common.errors import UserError
from common.progress import say
from common.storage import write_whole
from data import features
from data.text import vocabulary
from modeling.formats import model_folder
from tasks import common_flags, finetuning, output_dir, task_run, training_flags
from tasks.swag import examples as swag


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    finetuning.define_flags(values)
    for name, meaning in (
        ("train_file", "Choices with labels, for --do_train."),
        ("eval_file", "The same, for --do_eval and --eval_steps."),
        ("predict_file", "Choices, for --do_predict."),
        ("export_dir", "Write a SavedModel, choices to the best, there."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked.

    Attributes:
        flags: read from it.
        setup: the network's config and more.
        examples: flag of a file -> what it holds.
        choices: the most of an example.
    """

    flags: flags.FlagValues
    setup: finetuning.Setup
    examples: dict[str, list[swag.Example]]
    choices: int


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line, and the files."""
    values = common_flags.parse(argv, define_flags, __doc__)
    paths = task_run.wanted_files(values)
    if values.max_seq_length < 5:
        raise UserError(
            f"--max_seq_length={values.max_seq_length}", expected="at least 5"
        )
    setup = finetuning.check(values)
    examples = {}
    for name, path in paths.items():
        labelled = name != "predict_file"
        examples[name] = list(swag.read(path, labelled, say))
        if not examples[name]:
            raise UserError("no example", path=path, expected="one a line")
    model_folder.warn_vocabulary(
        values,
        setup.config,
        (
            " ".join([x.context, *x.choices])
            for some in examples.values()
            for x in some
        ),
    )
    most = max(map(swag.count_choices, examples.values()), default=2)
    return Job(values, setup, examples, most)


class Choosing:
    """A run: the network, its rows, and what it chooses.

    Args:
        job: what is asked for.

    Attributes:
        tuning: `finetuning.FineTuning`.
    """

    def __init__(self, job: Job):
        from data.records import example_files
        from data.text import tokenization
        from modeling import losses, models

        self._job, self._values = job, job.flags
        values = job.flags
        tokenizer = tokenization.FullTokenizer(
            values.vocab_file, values.do_lower_case, values.strip_accents
        )
        self._row_maker = swag.RowMaker(
            lambda text: tokenizer.convert_tokens_to_ids(
                tokenizer.tokenize(text)
            ),
            tokenizer.vocab[vocabulary.CLS],
            tokenizer.vocab[vocabulary.SEP],
            values.max_seq_length,
            job.choices,
        )
        schema = {
            features.LABEL_IDS: example_files.Feature(),
            features.CHOICE_WEIGHTS: example_files.Feature(
                "float32", size=job.choices
            ),
        }
        rows = self._make_rows("train_file") if values.do_train else ()
        self._rows = example_files.Rows(rows, schema, job.choices)
        self._tell_truncated("train_file")
        self.tuning = finetuning.FineTuning(
            values,
            job.setup,
            finetuning.Task(
                lambda: models.build_choice_model(
                    job.setup.config, values.random_seed
                ),
                (losses.CHOICE,),
                losses.choice_weights,
                losses.choice_sums,
                len(self._rows),
                job.choices,
            ),
        )

    def start(self) -> None:
        """Finds the weights to start from and prepares the folder."""
        values = self._values
        self.tuning.start()
        output_dir.prepare(
            values.output_dir, self._job.setup.config, values.vocab_file
        )

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""
        held_out = self.evaluate if self._values.eval_steps else None
        return self.tuning.train(
            self._rows, held_out, "eval_accuracy" if held_out else None
        )

    def evaluate(self) -> dict[str, float]:
        """Accuracy and loss of --eval_file."""
        import numpy as np

        examples = self._job.examples["eval_file"]
        found = self._probabilities(
            "eval_file", self._values.eval_batch_size, "evaluated"
        )
        hits, loss = 0, 0.0
        for example, probabilities in zip(examples, found, strict=True):
            hits += int(probabilities.argmax()) == example.label
            tiny = np.finfo(np.float64).tiny
            loss -= float(np.log(probabilities[example.label] + tiny))
        return {
            "eval_accuracy": hits / len(examples),
            "eval_loss": loss / len(examples),
        }

    def predict(self) -> Iterator[list[float]]:
        """Yields the probabilities of the choices of --predict_file."""
        for probabilities in self._probabilities(
            "predict_file", self._values.predict_batch_size, "predicted"
        ):
            yield probabilities.tolist()

    def write_predictions(self, folder: str) -> str:
        """Writes the best choice and the probabilities of all of them."""
        path = os.path.join(folder, "predictions.tsv")
        write_predictions(path, self.predict())
        return path

    def save_model(self, folder: str) -> None:
        """Writes the SavedModel."""
        from tasks.swag import export as serving

        values = self._values
        settings = serving.Settings(
            self._job.setup.config,
            values.vocab_file,
            values.do_lower_case,
            values.strip_accents,
            values.max_seq_length,
        )
        weights = self.tuning.weights()
        serving.save(serving.Chooser(settings, weights), folder)

    def _make_rows(self, name: str) -> Iterator[dict]:
        path = self._values[name].value
        for example in self._job.examples[name]:
            yield self._row_maker.row(example, path)

    def _probabilities(self, name: str, batch_size: int, what: str):
        """Yields float64 [choices of the example], in their order."""
        import numpy as np

        examples = self._job.examples[name]
        outputs = self.tuning.predict(
            self._make_rows(name), batch_size, what, len(examples)
        )
        for example, output in zip(examples, outputs, strict=True):
            logits = output["logits"][: len(example.choices)]
            powers = np.exp((logits - logits.max()).astype(np.float64))
            yield powers / powers.sum()

    def _tell_truncated(self, name: str) -> None:
        count = self._row_maker.truncated
        if count:
            say(
                f"{count:,} choices of {self._values[name].value} were cut to "
                f"{self._values.max_seq_length} pieces; see --max_seq_length"
            )


def write_predictions(path: str, found: Iterator[list[float]]) -> None:
    """Writes the number of the best choice and the probabilities of all.

    Args:
        path: a line an example, fields between tabs.
        found: the probabilities of each.
    """
    lines = []
    for probabilities in found:
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        fields = [str(best), *(f"{x:.6f}" for x in probabilities)]
        lines.append("\t".join(fields) + "\n")
    write_whole(path, "".join(lines))


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    task_run.carry_out(job.flags, Choosing(job))


if __name__ == "__main__":
    sys.exit(training_flags.run(main, sys.argv))
