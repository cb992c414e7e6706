r"""Claims about pre-training in small: runs that differ in one switch.

    python -m benchmarks.experiments pretrain CORPUS VOCAB CONFIG FOLDER STEPS \
        SEEDS PARALLEL [NAME ...]
    python -m benchmarks.experiments equal_time CORPUS VOCAB CONFIG FOLDER \
        MINUTES SEEDS PARALLEL GLUE [NAME ...]
    python -m benchmarks.experiments finetune RUN VOCAB CONFIG GLUE PARALLEL \
        [TASK ...]

`pretrain` trains each variant, by default all, with each seed on CORPUS without
every 50th document, and evaluates on these. A step has 4,096 positions, of
packed rows of 512 tokens 1,536.
`equal_time` first takes the time of a step of each variant on one core, the
best of three turns, and then trains each for the steps of MINUTES.
All are evaluated with masks of 15 %, and fine-tuned.
`finetune` trains a classifier from random weights and from every checkpoint in
the folder RUN; GLUE has a folder of each task. PARALLEL runs share the machine,
so that seconds are comparable only if it is 1. Records and runs are kept, and
those that are there are not made again. Prints a JSON line for each run.
"""

import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import sys
import time

from benchmarks import by_seed
from benchmarks.records_training import ROOT, run_script, split

METRICS = ("masked_lm_loss", "masked_lm_accuracy", "next_sentence_accuracy")
TASKS = {
    "sst2": ("SST-2", "accuracy"),
    "mrpc": ("MRPC", "accuracy"),
    "stsb": ("STS-B", "pearson"),
}
# Length -> batch size and masked positions.
SIZES = {128: (32, 20), 512: (8, 77)}
_ONCE = ("--dupe_factor=1",)
RECORDS = {
    "plain_128": (128,),
    "whole_words_128": (128, "--do_whole_word_mask"),
    "once_128": (128, *_ONCE),
    "masked_30_128": (
        128,
        *_ONCE,
        "--masked_lm_prob=0.3",
        "--max_predictions_per_seq=39",
    ),
    "masked_40_128": (
        128,
        *_ONCE,
        "--masked_lm_prob=0.4",
        "--max_predictions_per_seq=52",
    ),
    "packed_128": (128, *_ONCE, "--pack_sequences"),
    "plain_512": (512,),
    "packed_512": (512, "--pack_sequences"),
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A variant of pre-training.

    Attributes:
        records: key of `RECORDS`.
        held_out: key of `RECORDS`, for those to evaluate on.
        flags: of run_pretraining.py.
        short_first: whether 90 % of the steps have 128 tokens.
        batch_size: default: that of `SIZES`.
    """

    records: str
    held_out: str = "plain_128"
    flags: tuple[str, ...] = ()
    short_first: bool = False
    batch_size: int | None = None


VARIANTS = {
    "as in the paper": Variant("plain_128"),
    "without next sentences": Variant(
        "plain_128", flags=("--nouse_next_sentence",)
    ),
    "whole words": Variant("whole_words_128"),
    "static masks, drawn once": Variant("once_128"),
    "dynamic masks": Variant("once_128", flags=("--dynamic_masking",)),
    "15 % masked": Variant("once_128", "once_128"),
    "30 % masked": Variant("masked_30_128", "once_128"),
    "40 % masked": Variant("masked_40_128", "once_128"),
    "15 % masked, no next sentences": Variant(
        "once_128", "once_128", flags=("--nouse_next_sentence",)
    ),
    "packed": Variant("packed_128", "packed_128"),
    "512 tokens": Variant("plain_512", "plain_512"),
    "128, then 512 tokens": Variant("plain_512", "plain_512", short_first=True),
    "512 tokens, packed": Variant("packed_512", "packed_512", batch_size=3),
}


EQUAL_TIME = [
    name
    for name, variant in VARIANTS.items()
    if variant.held_out in ("once_128", "packed_128")
]
_TIMED_STEPS, _TURNS = 60, 3
_EPOCHS = {"sst2": 0.25, "stsb": 3}  # about 17,000 examples of each


def pretrain(corpus, vocab, config, folder, steps, seeds, parallel, names):
    """Trains variants; see the module.

    Args:
        corpus, vocab, config: paths of text, vocabulary and config.
        folder: where texts, records and runs are written.
        steps, seeds, parallel: numbers.
        names: keys of `VARIANTS`.
    """
    create_records(corpus, vocab, folder, names)

    def run(name: str, seed: int) -> dict:
        start = time.perf_counter()
        output = train(name, config, folder, steps, seed)
        return {
            "what": f"pre-training, {name}",
            "seed": seed,
            "steps": steps,
            "seconds": round(time.perf_counter() - start, 1),
            **_results(output, METRICS),
        }

    pairs = [(name, s) for s in range(1, seeds + 1) for name in names]
    _in_parallel(run, pairs, parallel)


def equal_time(
    corpus, vocab, config, folder, minutes, seeds, parallel, glue, names
):
    """Trains variants for equal times, and fine-tunes them; see the module.

    Args:
        corpus, vocab, config: paths of text, vocabulary and config.
        folder: where texts, records and runs are written.
        minutes, seeds, parallel: numbers.
        glue: folder of the tasks' folders.
        names: keys of `VARIANTS`.
    """
    os.environ |= {
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
    }
    create_records(corpus, vocab, folder, names)

    seconds = {name: [] for name in names}
    for turn in range(1, _TURNS + 1):
        for name in names:
            timed = train(name, config, folder, _TIMED_STEPS, turn, False)
            size = _batch_size(VARIANTS[name])
            seconds[name].append(by_seed.step_seconds(timed, size))
    steps = {name: round(60 * minutes / min(x)) for name, x in seconds.items()}

    def run(name: str, seed: int) -> dict:
        output = train(name, config, folder, steps[name], seed)
        scores = {}
        for task, epochs in _EPOCHS.items():
            tuned = f"{output}_{task}"
            train_classifier(
                task,
                glue,
                tuned,
                f"--init_checkpoint={output}",
                f"--num_train_epochs={epochs}",
                "--max_seq_length=64",
            )
            scores |= _results(tuned, (f"eval_{TASKS[task][1]}",))
        return {
            "what": f"pre-training for {minutes:g} minutes, {name}",
            "seed": seed,
            "steps": steps[name],
            **_results(output, METRICS),
            **scores,
        }

    pairs = [(name, s) for s in range(1, seeds + 1) for name in names]
    _in_parallel(run, pairs, parallel)


def create_records(corpus, vocab, folder, names) -> None:
    """Makes the records of variants that are not there, and the held-out ones.

    Args:
        corpus, vocab: paths of text and vocabulary.
        folder: where texts and records are written.
        names: keys of `VARIANTS`.
    """
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    texts = [f"{folder}/held_out.txt", f"{folder}/train.txt"]
    if not pathlib.Path(texts[1]).exists():
        split(corpus, folder)

    variants = [VARIANTS[name] for name in names]
    needed = {variant.records for variant in variants}
    if any(variant.short_first for variant in variants):
        needed.add("plain_128")
    held_out = {variant.held_out for variant in variants}

    for text, kinds in ((texts[0], held_out), (texts[1], needed)):
        prefix = "held_out_" if text == texts[0] else ""
        for kind in sorted(kinds):
            path = f"{folder}/{prefix}{kind}.tfrecord"
            if pathlib.Path(path).exists():
                continue
            length, *flags = RECORDS[kind]
            if prefix:
                flags += _ONCE
            run_script(
                ROOT / "create_pretraining_data.py",
                f"--input_file={text}",
                f"--output_file={path}",
                f"--vocab_file={vocab}",
                *_lengths(length),
                *flags,
            )


def train(
    name: str,
    config: str,
    folder: str,
    steps: int,
    seed: int,
    evaluates: bool = True,
) -> str:
    """Trains a variant; returns the folder of the run.

    Args:
        name: key of `VARIANTS`.
        config: path of the config.
        folder: of the records and the runs.
        steps: number of steps.
        seed: of the training.
        evaluates: whether it writes eval_results.txt.
    """
    variant = VARIANTS[name]
    words = f"{name} {steps} {seed}".replace(",", "").split()
    output = f"{folder}/{'_'.join(words)}"
    last = "eval_results.txt" if evaluates else f"model.ckpt-{steps}.index"
    if pathlib.Path(output, last).exists():
        return output

    records = f"--input_file={folder}/{variant.records}.tfrecord"
    if variant.short_first:
        records = (
            f"--phases={folder}/plain_128.tfrecord:90:{SIZES[128][0]},"
            f"{folder}/plain_512.tfrecord:10:{SIZES[512][0]}"
        )
    run_script(
        ROOT / "run_pretraining.py",
        *("--do_train", "--precision=auto", "--noreport"),
        *(["--do_eval"] if evaluates else []),
        records,
        *variant.flags,
        f"--eval_input_file={folder}/held_out_{variant.held_out}.tfrecord",
        f"--bert_config_file={config}",
        f"--output_dir={output}",
        f"--train_batch_size={_batch_size(variant)}",
        *("--eval_batch_size=64", "--eval_steps=0"),
        f"--num_train_steps={steps}",
        f"--num_warmup_steps={steps // 10}",
        f"--save_checkpoints_steps={steps}",
        "--learning_rate=1e-3",
        f"--random_seed={seed}",
    )
    return output


def train_classifier(task: str, glue: str, output: str, *flags: str) -> None:
    """Trains and evaluates a classifier.

    Args:
        task: key of `TASKS`.
        glue: folder of the tasks' folders.
        output: folder of the run.
        flags: of the model, the length, and the epochs.
    """
    run_script(
        ROOT / "run_classifier.py",
        *("--do_train", "--do_eval", "--precision=auto", "--noreport"),
        f"--task_name={task}",
        f"--data_dir={glue}/{TASKS[task][0]}",
        f"--output_dir={output}",
        *("--train_batch_size=32", "--eval_batch_size=32"),
        "--learning_rate=3e-4",
        *flags,
    )


def finetune(run_folder, vocab, config, glue, parallel, names):
    """Trains classifiers from random weights and from each checkpoint.

    Args:
        run_folder: folder of a pre-training run.
        vocab, config: paths of vocabulary and config.
        glue: folder of the tasks' folders.
        parallel: number of runs at the same time.
        names: keys of `TASKS`.
    """
    found = sorted(
        pathlib.Path(run_folder).glob("model.ckpt-*.index"),
        key=lambda path: int(path.stem.rsplit("-", 1)[1]),
    )
    starts = [None, *(str(path)[: -len(".index")] for path in found)]

    def run(start: str | None, task: str) -> dict:
        name = pathlib.Path(start).name if start else "random weights"
        own = f"{run_folder}/finetuned/{task}_{name.replace(' ', '_')}"
        train_classifier(
            task,
            glue,
            own,
            *([f"--init_checkpoint={start}"] if start else []),
            f"--bert_config_file={config}",
            f"--vocab_file={vocab}",
            *("--num_train_epochs=3", "--max_seq_length=128"),
        )
        metric = TASKS[task][1]
        return {
            "what": f"fine-tuning, {task}",
            "from": name,
            **_results(own, (f"eval_{metric}",)),
        }

    pairs = [(start, task) for start in starts for task in names]
    _in_parallel(run, pairs, parallel)


def _in_parallel(run, arguments: list[tuple], parallel: int) -> None:
    """Prints the results of runs as they end."""
    date = datetime.date.today().isoformat()
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        waiting = [pool.submit(run, *each) for each in arguments]
        for done in concurrent.futures.as_completed(waiting):
            print(json.dumps({**done.result(), "date": date}), flush=True)


def _batch_size(variant: Variant) -> int:
    length = RECORDS[variant.held_out][0]
    return variant.batch_size or SIZES[length][0]


def _results(folder: str, names: tuple[str, ...]) -> dict[str, float]:
    found = by_seed.results(folder)
    return {name: found[name] for name in names if name in found}


def _lengths(length: int) -> list[str]:
    masks = SIZES[length][1]
    return [
        f"--max_seq_length={length}",
        f"--max_predictions_per_seq={masks}",
    ]


def main() -> None:
    """Runs what the command line names."""
    what, *words = sys.argv[1:]
    if what == "pretrain":
        *paths, steps, seeds, parallel = words[:7]
        names = words[7:] or list(VARIANTS)
        pretrain(*paths, int(steps), int(seeds), int(parallel), names)
    elif what == "equal_time":
        *paths, minutes, seeds, parallel, glue = words[:8]
        counts = float(minutes), int(seeds), int(parallel)
        equal_time(*paths, *counts, glue, words[8:] or EQUAL_TIME)
    else:
        *paths, parallel = words[:5]
        finetune(*paths, int(parallel), words[5:] or list(TASKS))


if __name__ == "__main__":
    main()
