"""Records of a task, made once for their settings."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence

from bert.common import flags, storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.records import example_files
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats import model_folder
from bert.tasks import run_folder


def of_training(folder: str, source: str | None) -> str:
    """Identifies training data, which a run in output_dir must have read.

    Args:
        folder: output_dir.
        source: file of the data; None if the run does not train.

    Returns:
        a part of a sha256 of its content; "" without a source.

    Raises:
        UserError: the folder holds a run with other training data.
    """
    if not source:
        return ""
    content = storage.hash_file(source)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    try:
        recorded = model_folder.recorded_settings(folder)
    except UserError:  # damaged: the run resumes from an earlier checkpoint
        recorded = {}
    if not str(recorded.get("records", digest)).endswith(digest):
        raise UserError(
            "holds a run with other training data",
            path=folder,
            fix=f"pass another --output_dir, with --init_checkpoint={folder} "
            "to start from its weights",
        )
    return digest


def make(
    settings,
    path: str,
    source: str,
    examples: Sequence,
    encode: Callable[[], Iterable[dict]],
    schema: dict,
    tokenizer: Tokenizer,
    choices: int = 1,
    **key,
) -> int:
    """Writes the examples of a file, unless they exist already.

    Args:
        settings: settings of the script, with `tuning`.
        path: of the records; its folder is created, if the initial weights
            exist.
        source: file of the examples, for messages.
        examples: the examples as they were read, whose repr tells all.
        encode: returns their features; called if they have to be written.
        schema, choices: as for `example_files.write`.
        tokenizer: of the examples.
        **key: what else the records depend on, as JSON values.

    Returns:
        the number of records.

    Raises:
        UserError: there is no checkpoint, or the folder cannot be written.
    """
    tuning, training = settings.tuning, settings.tuning.training
    init_checkpoint = training.model.init_checkpoint
    if init_checkpoint and not run_folder.has_checkpoint(training.output_dir):
        model_folder.ModelFolder.open(init_checkpoint).resolve()
    storage.make_folder(os.path.dirname(path))
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(example).encode())
    key |= {
        "examples": digest.hexdigest(),
        "vocabulary": tokenizer.sha256,
        "do_lower_case": tokenizer.do_lower_case,
        "strip_accents": tokenizer.strip_accents,
        **flags.as_dict(settings, "cache_key"),
    }
    count = example_files.current_count(path, key)
    if count is not None:
        say(f"reusing {count:,} examples of {source} in {path}")
        return count
    count = example_files.write(
        path, encode(), schema, tuning.max_seq_length, key, choices
    )
    say(f"wrote {count:,} examples of {source} to {path}")
    return count
