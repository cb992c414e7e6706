"""Settings of run_pretraining.py."""

import dataclasses
from collections.abc import Iterator

from bert.common.errors import UserError
from bert.common.flags import MODEL, RARE, TRAINING, flag, group
from bert.training.settings import Training


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_pretraining.py."""

    training: Training = group(Training, eval_steps={"default": 1000})
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
        "no decay. wsd: constant, then decay over --num_decay_steps. clock: "
        "linear decay over the time of --train_for.",
        choices=("linear", "constant", "wsd", "clock"),
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
    given: frozenset[str] = frozenset()

    def mistakes(self) -> Iterator[UserError]:
        """Yields the flags that contradict each other."""
        if not self.training.do_train and not self.do_eval:
            yield UserError("nothing to do", fix="pass --do_train or --do_eval")
        yield from self.training.mistakes()

        if bool(self.phases) == bool(self.input_file):
            yield UserError(
                "both --input_file and --phases"
                if self.phases
                else "neither --input_file nor --phases",
                expected="one of them",
            )

        decay, steps = self.num_decay_steps, self.num_train_steps
        if (self.schedule == "wsd") != (0 < decay <= steps):
            yield UserError(
                f"--schedule={self.schedule}, --num_decay_steps={decay}",
                expected=f"wsd and 1 to {steps} steps, or neither",
            )
        if self.schedule == "clock" and not self.training.train_for:
            yield UserError("--schedule=clock", expected="--train_for")

        # Early stopping needs validation losses.
        patience = self.training.early_stopping_patience
        if patience and not (self.eval_input_file and self.training.eval_steps):
            yield UserError(
                f"--early_stopping_patience={patience}",
                expected="--eval_input_file and --eval_steps, for evaluations "
                "during training",
            )
