r"""Fine-tunes a BERT on sentences and pairs of them: GLUE, XNLI, your own.

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=mrpc \
        --do_train --do_eval --do_predict

Your own files, .tsv, .csv or .jsonl, need no code:

    --task_name=tsv --train_file=mails.csv --eval_file=more_mails.csv \
        --text_column=subject --text_b_column=body --label_column=folder
"""

import dataclasses
import glob
import os
import sys

from absl import flags

from common.errors import UserError
from common.progress import say
from modeling.formats import model_folder
from serving import export_folder
from tasks import common_flags, finetuning, output_dir, training_flags
from tasks.classification import inputs, metrics
from tasks.classification import run as classifier_run
from tasks.classification.examples import REGRESSION, Labels, Source
from tasks.classification.inputs import Task

_NLI = Labels(names=("contradiction", "entailment", "neutral"))
_XNLI = dataclasses.replace(_NLI, aliases=(("contradictory", "contradiction"),))
_TWO = Labels(names=("0", "1"))
_ENTAILED = Labels(names=("entailment", "not_entailment"))
_ACCURACY_F1 = (metrics.ACCURACY, metrics.F1)


def _xnli(file: str) -> Source:
    return Source(file, 6, 7, 1, keep=(0, "{language}"))


# A task of your own is an entry here: its files, and in them the columns of
# the text, the second text, the label and the id, from 0.
TASKS = {
    "cola": Task(
        (Source("train.tsv", 3, None, 1, header=False),),
        (Source("dev.tsv", 3, None, 1, header=False),),
        (Source("test.tsv", 1, id=0),),
        _TWO,
        (metrics.MATTHEWS, metrics.ACCURACY),
        submission=("CoLA",),
    ),
    "mnli": Task(
        (Source("train.tsv", 8, 9, -1),),
        (
            Source("dev_matched.tsv", 8, 9, -1),
            Source("dev_mismatched.tsv", 8, 9, -1),
        ),
        (
            Source("test_matched.tsv", 8, 9, id=0),
            Source("test_mismatched.tsv", 8, 9, id=0),
        ),
        _NLI,
        parts=("", "mismatched"),
        submission=("MNLI-m", "MNLI-mm"),
    ),
    "mrpc": Task(
        (Source("train.tsv", 3, 4, 0),),
        (Source("dev.tsv", 3, 4, 0),),
        (Source("test.tsv", 3, 4, id=0),),
        _TWO,
        _ACCURACY_F1,
        submission=("MRPC",),
    ),
    "xnli": Task(
        (Source("multinli/multinli.train.{language}.tsv", 0, 1, 2),),
        (_xnli("xnli.dev.tsv"),),
        (_xnli("xnli.test.tsv"),),
        _XNLI,
    ),
    "sst2": Task(
        (Source("train.tsv", 0, None, 1),),
        (Source("dev.tsv", 0, None, 1),),
        (Source("test.tsv", 1, id=0),),
        _TWO,
        submission=("SST-2",),
    ),
    "qnli": Task(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _ENTAILED,
        submission=("QNLI",),
    ),
    "qqp": Task(
        (Source("train.tsv", 3, 4, 5, skip_broken=True),),
        (Source("dev.tsv", 3, 4, 5, skip_broken=True),),
        (Source("test.tsv", 1, 2, id=0),),
        _TWO,
        _ACCURACY_F1,
        submission=("QQP",),
    ),
    "rte": Task(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _ENTAILED,
        submission=("RTE",),
    ),
    "wnli": Task(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _TWO,
        submission=("WNLI",),
    ),
    "stsb": Task(
        (Source("train.tsv", 7, 8, -1),),
        (Source("dev.tsv", 7, 8, -1),),
        (Source("test.tsv", 7, 8, id=0),),
        Labels(REGRESSION),
        (metrics.PEARSON, metrics.SPEARMAN),
        submission=("STS-B",),
    ),
    "ax": Task(  # the diagnostic set, for a model that was trained on MNLI
        dev=(Source("diagnostic-full.tsv", "Premise", "Hypothesis", "Label"),),
        test=(Source("diagnostic.tsv", 1, 2, id=0),),
        labels=_NLI,
        metrics=(metrics.MATTHEWS, metrics.ACCURACY),
        submission=("AX",),
    ),
}


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags: the original's 25 and more."""
    # A hub module brings config and vocabulary.
    finetuning.define_flags(values, required=False)
    inputs.define_flags(values)
    for name, meaning in (
        ("bert_hub_module_handle", "Start from a TF-Hub SavedModel's weights."),
        ("export_dir", "Write a SavedModel, text to label, to this folder."),
        ("glue_dir", "Write the answers to this folder as GLUE takes them."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    flags.DEFINE_enum(
        "export_precision",
        "float32",
        ["float32", "bfloat16"],
        "Of the SavedModel's weights and computation: bfloat16 is faster and "
        "coarser where the device has it.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "num_seeds",
        1,
        "Train so often, with seeds from --random_seed on; means are told.",
        flag_values=values,
        lower_bound=1,
    )


def read_flags(argv: list[str]) -> classifier_run.Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not any(
        values[name].value
        for name in ("do_train", "do_eval", "do_predict", "export_dir")
    ):
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )
    if values.num_seeds > 1 and not (values.do_train and values.do_eval):
        raise UserError(
            f"--num_seeds={values.num_seeds}",
            expected="--do_train --do_eval with it",
        )
    if values.glue_dir and not values.do_predict:
        raise UserError("--glue_dir without --do_predict")
    export_folder.check(values.export_dir)
    handle = values.bert_hub_module_handle
    if handle:
        check_hub_flags(values, handle)
    for name in ("vocab_file", "bert_config_file"):
        if not values[name].value and not (handle and name[0] == "b"):
            raise UserError(f"no --{name}", fix="see --help")
    data = inputs.read(values, TASKS)
    check_recorded(values.output_dir, data)
    weights = config = None
    if handle:
        config, weights = read_hub(values, handle)
    setup = finetuning.check(values, config)
    model_folder.warn_vocabulary(values, setup.config, data.texts())
    return classifier_run.Job(argv, values, setup, data, weights)


def check_hub_flags(values: flags.FlagValues, handle: str) -> None:
    """Takes the vocabulary of a hub module, or compares it with the flag."""
    if values.init_checkpoint:
        raise UserError(
            "--init_checkpoint and --bert_hub_module_handle",
            expected="one of them",
        )
    if not os.path.isfile(os.path.join(handle, "saved_model.pb")):
        raise UserError(
            "no SavedModel",
            path=handle,
            expected="a folder on this machine with saved_model.pb",
            fix="download the module and unpack it",
        )
    if not values.vocab_file:
        values.vocab_file = os.path.join(handle, "assets", "vocab.txt")
    output_dir.check_beside(handle, values.vocab_file)


def read_hub(values: flags.FlagValues, handle: str):
    """Reads config and weights of a hub module; no graph is loaded."""
    import convert_checkpoint

    bert = convert_checkpoint.read_hub(handle, values.bert_config_file)
    if not values["do_lower_case"].present and bert.do_lower_case is not None:
        values.do_lower_case = bert.do_lower_case
    if not values["strip_accents"].present:
        values.strip_accents = bert.strip_accents
    return bert.config, bert.values


def check_recorded(folder: str, data: inputs.Data) -> None:
    """Refuses a folder with checkpoints of other labels."""
    recorded = model_folder.recorded_task(folder)
    trained = glob.glob(f"{glob.escape(folder)}/**/checkpoint", recursive=True)
    if recorded and trained and recorded != data.describe():
        raise UserError(
            f"holds a run with the labels {_shown(recorded)}",
            path=folder,
            expected=_shown(data.describe()),
            fix="pass another --output_dir",
        )


def _shown(task: dict) -> str:
    labels = task["labels"]
    if not labels:
        return "of numbers"
    more = f", ... ({len(labels)})" if len(labels) > 5 else ""
    return f"{', '.join(labels[:5])}{more}"


def values_of(job: classifier_run.Job, number: int) -> flags.FlagValues:
    """The flags of the run of a seed."""
    values = job.flags
    if values.num_seeds == 1:
        return values
    seed = values.random_seed + number
    folder = os.path.join(values.output_dir, f"seed_{seed}")
    own = common_flags.parse(
        [*job.argv, f"--random_seed={seed}", f"--output_dir={folder}"],
        define_flags,
        __doc__,
    )
    own.vocab_file = values.vocab_file  # a hub module may have brought them
    own.do_lower_case = values.do_lower_case
    own.strip_accents = values.strip_accents
    return own


def choose(results: list[dict[str, float]], metric: str) -> int:
    """The number of the best run of several seeds."""
    return max(range(len(results)), key=lambda i: results[i][f"eval_{metric}"])


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    values, data = job.flags, job.data
    records: dict = {}
    results, wrote = [], []
    for number in range(values.num_seeds):
        run = classifier_run.Classification(job, values_of(job, number))
        run.start()
        for part in data.parts:
            if part not in records:
                records[part] = inputs.make_records(values, data, part)
        if values.do_train:
            wrote.append(run.train(records))
        step = run.tuning.take_best()
        if values.do_eval:
            results.append(run.evaluate_all(records))
            if values.num_seeds > 1:
                output_dir.write_results(run.folder, step, results[-1])
    if values.do_eval:
        wrote.append(
            output_dir.write_results(
                values.output_dir, step, classifier_run.summarize(results)
            )
        )
    if values.num_seeds > 1 and (values.do_predict or values.export_dir):
        best = choose(results, data.metrics[0])
        run = classifier_run.Classification(job, values_of(job, best))
        run.start()
        say(f"answers are those of {run.folder}, step {run.tuning.take_best()}")
    if values.do_predict:
        wrote += classifier_run.write_predictions(job, run, records)
    if values.export_dir:
        wrote.append(classifier_run.export(job, run))
    if wrote:
        print("wrote " + "\n      ".join(wrote))


if __name__ == "__main__":
    sys.exit(training_flags.run(main, sys.argv))
