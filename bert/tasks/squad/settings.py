"""Settings of run_squad.py."""

import dataclasses

from bert.common import flags
from bert.common.errors import UserError
from bert.common.flags import OUTPUT, RARE, changed, flag
from bert.common.rules import excludes, needs, rule
from bert.tasks.finetuning_settings import HELD_OUT, FineTuning
from bert.tasks.squad.examples import NOTHING, SPANS, TEXTS

OFFSETS, ORIGINAL = "offsets", "original"
KIND = "spans"  # in a task.json


def _check_threshold(settings: "Settings") -> None:
    """Raises a UserError if a threshold is both tuned and given."""
    if settings.tune_null_threshold and settings.is_threshold_given:
        raise UserError(
            "--tune_null_threshold with --null_score_diff_threshold",
            expected="one of them",
        )


def _check_length(settings: "Settings") -> None:
    """Raises a UserError if a window has no room for the text."""
    least = settings.max_query_length + 3
    if settings.max_seq_length <= least:
        raise UserError(
            f"--max_seq_length={settings.max_seq_length}",
            expected=f"more than --max_query_length + 3 = {least}",
        )


@dataclasses.dataclass(frozen=True)
class Settings(FineTuning):
    """Settings of run_squad.py."""

    RULES = [
        needs("tune_null_threshold", "version_2_with_negative"),
        excludes("num_folds", "tune_null_threshold", reason=HELD_OUT),
        rule(
            "--tune_null_threshold excludes --null_score_diff_threshold.",
            _check_threshold,
            "tune_null_threshold",
            "null_score_diff_threshold=0",
        ),
        rule(
            "--max_seq_length is more than --max_query_length + 3.",
            _check_length,
            "max_seq_length=67",
        ),
    ]

    max_seq_length: int = changed(FineTuning, "max_seq_length", default=384)
    train_file: str | None = flag(
        None, "SQuAD JSON, also .gz, for --do_train.", path=True
    )
    predict_file: str | None = flag(
        None, "SQuAD JSON, for --do_predict and --do_eval.", path=True
    )
    doc_stride: int = flag(
        128,
        "Tokens between the starts of two windows.",
        at_least=1,
        recorded=True,
    )
    max_query_length: int = flag(
        64,
        "Maximum number of tokens of a question; longer ones are truncated.",
        at_least=1,
        recorded=True,
    )
    n_best_size: int = flag(
        20,
        "Number of answers in the n-best list of a question.",
        at_least=1,
        recorded=True,
        topic=OUTPUT,
    )
    max_answer_length: int = flag(
        30,
        "Maximum number of tokens of an answer.",
        at_least=1,
        recorded=True,
        topic=OUTPUT,
    )
    null_score_diff_threshold: float = flag(
        0.0,
        "Threshold of the odds of no answer; if they are greater, the answer "
        "is empty.",
        at_least=-1e6,
        at_most=1e6,
        recorded=True,
        topic=OUTPUT,
    )
    version_2_with_negative: bool = flag(
        False,
        "Some questions are unanswerable, as in SQuAD 2.0.",
        recorded=True,
    )
    tune_null_threshold: bool = flag(
        False,
        "Tune the null threshold for the best F1 on --predict_file, and record "
        "it for later commands and the export.",
        topic=OUTPUT,
    )
    verbose_logging: bool = flag(
        False,
        "Log answers that --answer_text=original cannot align.",
        topic=RARE,
    )
    answer_text: str = flag(
        OFFSETS,
        "How to get the text of an answer: from the character offsets of its "
        "tokens, or by the original's alignment.",
        choices=(OFFSETS, ORIGINAL),
        recorded=True,
        topic=RARE,
    )

    @property
    def is_threshold_given(self) -> bool:
        """Whether the command line sets the threshold."""
        return "null_score_diff_threshold" in self.given

    @property
    def fits_decision(self) -> bool:
        """Whether the null threshold is fitted."""
        return self.tune_null_threshold

    @property
    def needed(self) -> dict[str, str]:
        """Flag of each file to read -> the needed labels."""
        needed = {}
        if self.do_train:
            needed["train_file"] = SPANS
        if self.evaluates and not self.num_folds or self.tune_null_threshold:
            needed["predict_file"] = TEXTS
        elif self.do_predict:
            needed["predict_file"] = NOTHING
        return needed

    @property
    def needed_files(self) -> list[str]:
        """Names of the flags whose files the run reads."""
        return [*self.needed]


def _recorded_names() -> list[str]:
    """Names of the flags that a `task.json` records."""
    return [x.name for x in flags.flags_of(Settings) if x.recorded]


def describe(settings: Settings) -> dict:
    """The `task.json` of a model: the settings that predictions need."""
    values = flags.as_dict(settings)
    return {"kind": KIND, "labels": []} | {
        name: values[name] for name in _recorded_names()
    }


def recorded(task: dict | None) -> dict:
    """Reads the settings in a `task.json`.

    Args:
        task: dict or None. The `task.json` of a model.

    Returns:
        flag -> value; {} if the model was not trained by run_squad.py.
    """
    if not task or task["kind"] != KIND:
        return {}
    return {name: task[name] for name in _recorded_names() if name in task}
