"""Settings of run_swag.py."""

import dataclasses
from collections.abc import Iterator

from bert.common.errors import UserError
from bert.common.flags import flag, group
from bert.tasks.finetuning_settings import FineTuning, files_of, unnamed

KIND = "choices"  # in a task.json


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_swag.py."""

    finetuning: FineTuning = group(FineTuning, max_seq_length={"at_least": 5})
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
    given: frozenset[str] = frozenset()

    def mistakes(self) -> Iterator[UserError]:
        """Yields errors for flags in contradiction and missing files."""
        files = files_of(self)
        yield from self.finetuning.mistakes(bool(files))
        yield from unnamed(files)
