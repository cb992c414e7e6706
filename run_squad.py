r"""Fine-tunes a BERT to answer questions on paragraphs, as of SQuAD.

    python run_squad.py --train_file=train-v1.1.json \
        --predict_file=dev-v1.1.json --do_train --do_predict --do_eval \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=squad

For SQuAD 2.0, with questions that have no answer:

    --version_2_with_negative --tune_null_threshold --export_dir=answers
"""

import dataclasses
import sys

from absl import flags

from common.errors import UserError
from common.progress import say
from data.text import vocabulary_checks
from modeling.formats import model_folder
from serving import export_folder
from tasks import common_flags, finetuning, training_flags
from tasks.squad import examples

OFFSETS, ORIGINAL = "offsets", "original"


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags: the original's 30 and a few more."""
    finetuning.define_flags(values)
    values.set_default("max_seq_length", 384)
    for name, meaning in (
        ("train_file", "Questions in SQuAD's JSON or that of `datasets`."),
        ("predict_file", "The same, for --do_predict and --do_eval."),
        ("export_dir", "Write a SavedModel, question to answer, there."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    for name, default, meaning in (
        ("doc_stride", 128, "Pieces from a window's start to the next's."),
        ("max_query_length", 64, "Pieces of a question; more are cut."),
        ("n_best_size", 20, "Starts and ends that are paired; n-best."),
        ("max_answer_length", 30, "Pieces of an answer at most."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=1
        )
    flags.DEFINE_float(
        "null_score_diff_threshold",
        0.0,
        "With greater odds of no answer, the answer is empty.",
        flag_values=values,
    )
    for name, meaning in (
        ("version_2_with_negative", "Some questions have no answer."),
        (
            "tune_null_threshold",
            "Find the threshold with the best F1 on --predict_file; use it, "
            "and keep it for later runs and the export.",
        ),
        (
            "verbose_logging",
            "Tell of each answer that --answer_text=original cannot align.",
        ),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)
    flags.DEFINE_enum(
        "answer_text",
        OFFSETS,
        [OFFSETS, ORIGINAL],
        "How pieces become text: by their characters in the context, or by "
        "the original's alignment. What is exported has offsets.",
        flag_values=values,
    )


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked.

    Attributes:
        flags: read from it.
        setup: the network's config and more.
        train: the questions of --train_file, or None.
        predict: those of --predict_file, or None.
    """

    flags: flags.FlagValues
    setup: finetuning.Setup
    train: examples.Dataset | None
    predict: examples.Dataset | None


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line, and the files."""
    values = common_flags.parse(argv, define_flags, __doc__)
    _check_wanted(values)
    export_folder.check(values.export_dir)
    if values.max_seq_length <= values.max_query_length + 3:
        raise UserError(
            f"--max_seq_length={values.max_seq_length}",
            expected="more than --max_query_length and 3, "
            f"{values.max_query_length + 3}",
        )
    setup = finetuning.check(values)
    # The windows are made in a graph too.
    vocabulary_checks.check_exportable(values.vocab_file, setup.vocab)
    train = predict = None
    if values.do_train:
        train = _read(values, "train_file", examples.SPANS)
    if answers_questions(values):
        scored = needs_labels(values)
        needed = examples.TEXTS if scored else examples.NOTHING
        predict = _read(values, "predict_file", needed)
    model_folder.warn_vocabulary(
        values,
        setup.config,
        (
            f"{x.question} {x.context}"
            for dataset in (train, predict)
            for x in (dataset.examples if dataset else ())
        ),
    )
    return Job(values, setup, train, predict)


def answers_questions(values: flags.FlagValues) -> bool:
    """Whether --predict_file is read."""
    return values.do_predict or needs_labels(values)


def needs_labels(values: flags.FlagValues) -> bool:
    """Whether answers are scored."""
    while_training = values.do_train and values.eval_steps > 0
    return values.do_eval or values.tune_null_threshold or while_training


def _check_wanted(values: flags.FlagValues) -> None:
    """Refuses flags that do not go together."""
    if not (values.do_train or answers_questions(values) or values.export_dir):
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_predict, --do_eval or --export_dir",
        )
    if values.tune_null_threshold and not values.version_2_with_negative:
        raise UserError(
            "--tune_null_threshold without --version_2_with_negative",
            fix="pass both, or neither: without it there always is an answer",
        )
    if (
        values.tune_null_threshold
        and values["null_score_diff_threshold"].present
    ):
        raise UserError(
            "--tune_null_threshold with --null_score_diff_threshold",
            expected="one of them",
        )
    for name, wanted in (
        ("train_file", values.do_train),
        ("predict_file", answers_questions(values)),
    ):
        if wanted and not values[name].value:
            raise UserError(f"no --{name}", fix="name the file")


def _read(values: flags.FlagValues, name: str, needed: str) -> examples.Dataset:
    """The questions of a file, of the version that the flags say."""
    path = values[name].value
    if len(common_flags.list_files(path, name)) != 1:
        raise UserError(f"--{name}={path!r}", expected="one file")
    dataset = examples.read(path, needed)
    version_2 = values.version_2_with_negative
    if needed != examples.NOTHING:
        examples.check_version(dataset, version_2)
    elif not version_2 and any(x.impossible for x in dataset.examples):
        say(
            f"warning: {path} has questions without an answer, and all get "
            "one; see --version_2_with_negative"
        )
    return dataset


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    from tasks.squad import run

    wrote = run.run(job)
    if wrote:
        print("wrote " + "\n      ".join(wrote))


if __name__ == "__main__":
    sys.exit(training_flags.run(main, sys.argv))
