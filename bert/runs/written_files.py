"""Files that a run writes to its folder, besides its checkpoints."""

import shlex
import sys

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.formats.json_files import Json
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats.checkpoint_files import VOCABULARY
from bert.tasks import eval_report
from bert.tasks.run import OutputFolder


def write_inputs(
    folder: OutputFolder, config: BertConfig, tokenizer: Tokenizer | None
) -> None:
    """Creates the folder; writes config, vocabulary and command to it.

    Args:
        folder: OutputFolder. Folder of the run.
        config: BertConfig. Sizes of the network.
        tokenizer: Tokenizer or None. Tokenizer of the run, if known.

    Raises:
        OSError: the folder cannot be written.
    """
    storage.make_folder(folder.path)
    write_whole(folder.file("bert_config.json"), config.to_json())
    if tokenizer:
        write_whole(folder.file(VOCABULARY), tokenizer.content)

    # When another command resumes the run, it is appended.
    path, before = folder.file("command.txt"), ""
    command = shlex.join(sys.argv) + "\n"
    if storage.exists(path):
        with storage.open_text(path) as file:
            before = file.read()
    if not before.endswith(command):
        write_whole(path, before + command)


def write_results(
    folder: OutputFolder,
    step: int,
    metrics: dict[str, float],
    report: dict[str, Json] | None = None,
) -> list[str]:
    """Writes and prints `eval_results.txt` with the original's keys.

    The file has all digits, the printed lines six.

    Args:
        folder: OutputFolder. Folder of the run.
        step: int. Global step.
        metrics: dict. Metric -> value.
        report: dict or None. Values for `eval_report`, which is also
            written. Its baselines are printed beside the metrics.
            Default: None.

    Returns:
        Paths of the files.
    """
    paths = [folder.file("eval_results.txt")]
    result = {"global_step": step, **metrics}
    lines = [f"{key} = {result[key]}\n" for key in sorted(result)]
    write_whole(paths[0], "".join(lines))

    # Log.
    baselines = (report or {}).get("references", {})
    for key in sorted(result):
        shown = value = result[key]
        if isinstance(value, float):
            shown = eval_report.describe(key, value, baselines)
        print(f"{key} = {shown}")
    if report is not None:
        paths.append(eval_report.write(folder.path, step, metrics, report))
    return paths


def print_written(wrote: list[str]) -> None:
    """Prints the paths of written files, at the end of a script."""
    if wrote:
        print("wrote " + "\n      ".join(wrote))
