"""Records without a manifest that earlier starts of a run have verified.

output_dir/verified_records.json    path -> size and time of the file, what
                                    it was verified for, number of records
"""

import json
import os

from common import storage
from common.errors import UserError
from tasks.pretraining import inputs as inputs_lib
from tasks.pretraining.settings import Settings

FILE = "verified_records.json"


class Verified:
    """The verified files of a run.

    Args:
        folder: output_dir of the run; it need not exist.
    """

    def __init__(self, folder: str):
        self._path = os.path.join(folder, FILE)
        self._is_new, self._known = False, {}
        try:
            with storage.open_text(self._path) as file:
                found = json.load(file)
            self._known = found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            pass

    def count(self, path: str, schema: dict, vocab_size: int) -> int | None:
        """Number of records of a file; None if it has to be verified."""
        known = self._known.get(storage.absolute(path))
        expected = _describe(path, schema, vocab_size)
        if isinstance(known, dict) and {**known, **expected} == known:
            return known.get("records")
        return None

    def add(
        self, path: str, schema: dict, vocab_size: int, records: int
    ) -> None:
        """Adds a file that has been verified."""
        described = _describe(path, schema, vocab_size)
        self._known[storage.absolute(path)] = {**described, "records": records}
        self._is_new = True

    def save(self) -> None:
        """Writes what has been added."""
        if self._is_new:
            text = json.dumps(self._known, indent=2) + "\n"
            storage.write_whole(self._path, text)


def check_all_records(
    inputs: inputs_lib.Inputs,
    settings: Settings,
    vocab_size: int,
    strategy,
    known: Verified,
) -> list[int]:
    """Checks the records that this process and its workers will read.

    The chief checks them for all.

    Args:
        inputs: the records.
        settings: settings of the script.
        vocab_size: ids must be below it.
        strategy: of the run.
        known: files that need no check; those that are checked are added.

    Returns:
        the number of records of each phase, if the run trains.

    Raises:
        UserError: as for `check_records`.
    """
    from training import workers

    phases = inputs.phases if settings.training.do_train else []
    sets = [phase.records for phase in phases]
    sets += [inputs.held_out] if inputs.held_out else []
    if not sets:
        sets = [inputs.phases[-1].records]
    counts = [0] * len(sets)
    if workers.is_chief():
        try:
            counts = [
                inputs_lib.check_records(x, vocab_size, known) for x in sets
            ]
        except UserError:
            workers.gather(strategy, *[-1] * len(sets))
            raise
    found = workers.gather(strategy, *counts)
    if found.min() < 0:
        raise UserError(
            "the first worker rejected the records", fix="see its log"
        )
    return [int(count) for count in found.max(0)][: len(phases)]


def _describe(path: str, schema: dict, vocab_size: int) -> dict:
    return {
        "version": list(storage.version(path)),
        "schema": {name: list(kind) for name, kind in schema.items()},
        "vocab_size": vocab_size,
    }
