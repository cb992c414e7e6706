"""Settings of run_swag.py."""

import dataclasses

from bert.common.flags import changed, flag
from bert.common.rules import excludes
from bert.tasks.finetuning_settings import FineTuning

KIND = "choices"  # in a task.json


@dataclasses.dataclass(frozen=True)
class Settings(FineTuning):
    """Settings of run_swag.py."""

    RULES = [excludes("num_folds", "eval_file")]

    max_seq_length: int = changed(FineTuning, "max_seq_length", at_least=5)
    train_file: str | None = flag(
        None, "CSV or JSON lines with labels, for --do_train.", path=True
    )
    eval_file: str | None = flag(
        None, "Labelled file for --do_eval and --eval_steps.", path=True
    )
    predict_file: str | None = flag(
        None,
        "CSV or JSON lines for --do_predict; labels are ignored.",
        path=True,
    )
