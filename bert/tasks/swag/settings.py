"""Settings of run_swag.py."""

import dataclasses

from bert.common.flags import flag, group
from bert.tasks import finetuning_checks
from bert.tasks.finetuning_settings import FineTuning


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_swag.py."""

    finetuning: FineTuning = group(FineTuning, max_seq_length={"at_least": 5})
    train_file: str | None = flag(
        None, "CSV or JSON lines with labels, for --do_train.", path=True
    )
    eval_file: str | None = flag(
        None, "The same, for --do_eval and --eval_steps.", path=True
    )
    predict_file: str | None = flag(
        None, "CSV or JSON lines, labels ignored, for --do_predict.", path=True
    )
    given: frozenset[str] = frozenset()

    def check(self) -> None:
        """Checks that the required files are named.

        Raises:
            UserError: one is missing.
        """
        finetuning_checks.check_files(
            self.finetuning, finetuning_checks.requested_files(self)
        )
