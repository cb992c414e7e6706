"""Settings of run_pretraining.py."""

import dataclasses

from common.errors import UserError
from common.flags import flag, group
from tasks.settings import Training


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_pretraining.py."""

    training: Training = group(Training, eval_steps=1000)
    input_file: str | None = flag(
        None, "TFRecords: files and globs, separated by commas.", path=True
    )
    phases: str | None = flag(
        None,
        "Instead of --input_file: TFRecords, their share of the steps and, if "
        "it differs, their batch size, as in "
        "'128/*.tfrecord*:90,512/*.tfrecord*:10:64'.",
        resume=True,
        path=True,
    )
    eval_input_file: str | None = flag(
        None, "Held-out TFRecords; default: those of training.", path=True
    )
    vocab_file: str | None = flag(
        None,
        "Vocabulary of the records; default: the one they name.",
        path=True,
    )
    do_lower_case: bool | None = flag(
        None,
        "Casing of the records; default: as their manifest says.",
        resume=True,
    )
    strip_accents: bool | None = flag(
        None,
        "Whether the records have no accents; default: as their manifest says.",
        resume=True,
    )
    do_eval: bool = flag(False, "Evaluate the newest checkpoint.")
    max_seq_length: int = flag(
        128,
        "Tokens of a sequence, [CLS] and [SEP] included.",
        at_least=5,
        resume=True,
    )
    max_predictions_per_seq: int = flag(
        20, "Maximum number of masked tokens of a sequence.", at_least=1
    )
    dynamic_masking: bool = flag(
        False, "Draw new masks in each epoch.", resume=True
    )
    num_train_steps: int = flag(
        100000, "Number of training steps.", at_least=1, resume=True
    )
    num_warmup_steps: int = flag(
        10000, "Steps of linear warm-up.", at_least=0, resume=True
    )
    max_eval_steps: int = flag(
        100, "Maximum number of batches to evaluate.", at_least=1
    )
    given: frozenset[str] = frozenset()

    def check(self) -> None:
        """Checks the flags that need no file.

        Raises:
            UserError: they contradict each other.
        """
        if not self.training.do_train and not self.do_eval:
            raise UserError("nothing to do", fix="pass --do_train or --do_eval")
        patience = self.training.early_stopping_patience
        if patience and not self.eval_input_file:
            raise UserError(
                f"--early_stopping_patience={patience}",
                expected="--eval_input_file, on which evaluations improve",
            )
