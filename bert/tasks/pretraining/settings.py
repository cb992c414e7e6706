"""Settings of run_pretraining.py."""

import dataclasses

from bert.common.flags import MODEL, RARE, TRAINING, changed, flag
from bert.common.rules import (
    at_least_one,
    at_most,
    excludes,
    needs,
)
from bert.training.settings import Training


@dataclasses.dataclass(frozen=True)
class Settings(Training):
    """Settings of run_pretraining.py."""

    RULES = [
        at_least_one("nothing to do", "do_train", "do_eval"),
        at_least_one("no records", "input_file", "phases"),
        excludes("input_file", "phases"),
        needs("schedule=wsd", "num_decay_steps"),
        needs("num_decay_steps", "schedule=wsd"),
        at_most(
            "num_decay_steps", lambda s: s.num_train_steps, "--num_train_steps"
        ),
        needs("early_stopping_patience", "eval_input_file"),
    ]

    eval_steps: int = changed(Training, "eval_steps", default=1000)
    input_file: str | None = flag(
        None, "TFRecords: files and globs, separated by commas.", path=True
    )
    phases: str | None = flag(
        None,
        "Instead of --input_file: comma-separated phases, each with TFRecords, "
        "the relative weight of its steps and, optionally, its batch size, "
        "as in '128/*.tfrecord*:90,512/*.tfrecord*:10:64'.",
        resume=True,
        path=True,
        topic=RARE,
    )
    eval_input_file: str | None = flag(
        None,
        "TFRecords to evaluate on. Default: the training records.",
        path=True,
    )
    vocab_size: int | None = flag(
        None,
        "Number of tokens of the vocabulary, instead of the config's.",
        at_least=1,
        topic=MODEL,
    )
    do_eval: bool = flag(
        False, "Evaluate the newest checkpoint.", topic=TRAINING
    )
    max_seq_length: int = flag(
        128,
        "Maximum number of tokens of a sequence, with [CLS] and [SEP]. "
        "If not given, the value of the records is used; a different value is "
        "an error.",
        at_least=5,
    )
    max_predictions_per_seq: int = flag(
        20,
        "Maximum number of masked tokens of a sequence. If not given, the "
        "value of the records is used; a different value is an error.",
        at_least=1,
    )
    dynamic_masking: bool = flag(
        False, "Draw new masks in each epoch.", resume=True, topic=TRAINING
    )
    use_next_sentence: bool = flag(
        True,
        "Also train next sentence prediction.",
        resume=True,
        topic=TRAINING,
    )
    num_train_steps: int = flag(
        100000,
        "Number of training steps.",
        at_least=1,
        resume=True,
        topic=TRAINING,
    )
    num_warmup_steps: int = flag(
        10000,
        "Steps of linear warm-up.",
        at_least=0,
        resume=True,
        topic=TRAINING,
    )
    schedule: str = flag(
        "linear",
        "Learning rate after the warm-up. linear: linear decay to 0. constant: "
        "no decay. wsd: constant, then decay over --num_decay_steps.",
        choices=("linear", "constant", "wsd"),
        resume=True,
        topic=TRAINING,
    )
    num_decay_steps: int = flag(
        0,
        "Number of decay steps of --schedule=wsd.",
        at_least=0,
        resume=True,
        topic=TRAINING,
    )
    max_eval_steps: int = flag(
        100,
        "Maximum number of batches to evaluate.",
        at_least=1,
        topic=TRAINING,
    )
