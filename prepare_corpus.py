r"""Raw text -> a corpus: one sentence a line, blank lines between documents.

    python prepare_corpus.py --input_file='articles.jsonl.gz,books' \
        --output_file=corpus.txt.gz

Files are plain text or JSON lines, each also with .gz; folders are walked.
The same files and flags give the same corpus for any number of processes.
"""

import os
import sys

from absl import flags

from common import storage
from common.errors import UserError
from common.progress import Progress, say
from data.corpus import corpus_writer, raw_text
from tasks import common_flags, text_flags


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, meaning in (
        ("input_file", "Raw text: files, globs, folders, comma-separated."),
        ("output_file", "The corpus to write; compressed if it ends in .gz."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    flags.DEFINE_enum(
        "document_boundary",
        "file",
        ["file", "blank_line"],
        "Plain text: a file is a document, or each paragraph is one.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "text_field",
        "text",
        "Field of JSON lines that holds the text.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "language",
        "en",
        f"Whose rules end sentences: {' '.join(raw_text.LANGUAGES)}.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "max_bad_lines",
        0,
        "At most so many lines that cannot be read are dropped.",
        flag_values=values,
        lower_bound=0,
    )
    flags.DEFINE_integer(
        "num_processes",
        None,
        "Processes that split sentences; default: one for each core.",
        flag_values=values,
        lower_bound=1,
    )


def list_inputs(patterns: str) -> list[str]:
    """Files of a comma-separated list of paths, globs and folders.

    Raises:
        UserError: a pattern matches nothing, or a folder holds no file.
    """
    files = []
    for pattern in patterns.split(","):
        exists = storage.exists(pattern)  # its name may look like a glob
        matches = [pattern] if exists else storage.glob(pattern)
        for match in matches or common_flags.list_files(pattern, "input_file"):
            is_folder = storage.is_folder(match)
            files += files_below(match) if is_folder else [match]
    return files


def files_below(folder: str) -> list[str]:
    """Sorted files of a folder and those below it, without hidden ones.

    Raises:
        UserError: there is none.
    """
    files = []
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [
            os.path.join(path, name)
            for name in names
            if not name.startswith(".")
        ]
    files = sorted(filter(os.path.isfile, files))
    if not files:
        raise UserError("no file in this folder", path=folder)
    return files


def read_flags(argv: list[str]) -> tuple[flags.FlagValues, list[str]]:
    """Reads and checks the command line: (flags, input files)."""
    values = common_flags.parse(argv, define_flags, __doc__)
    output = values.output_file
    text_flags.check_output_file(output, "output_file")
    if os.path.exists(output) and not os.path.isfile(output):
        raise UserError(  # a device, say, would be replaced by a file
            "is no ordinary file", path=output, expected="the name of a file"
        )
    if values.language not in raw_text.LANGUAGES:
        raise UserError(
            f"--language={values.language!r} is unknown",
            expected=f"one of {', '.join(raw_text.LANGUAGES)}",
            fix="pass the nearest; en serves those without relatives here",
        )
    files = list_inputs(values.input_file)
    written = {
        os.path.realpath(output),
        os.path.realpath(corpus_writer.temporary_name(output)),
    }
    for path in files:
        if os.path.realpath(path) in written:
            raise UserError(
                "is input and output",
                path=path,
                fix="write the corpus to another folder",
            )
    return values, files


def warnings(counts: corpus_writer.Counts) -> list[str]:
    """What a user should look at before making records."""
    found = []
    if counts.documents == 1:
        found.append(
            "one document; next sentence prediction needs two or more: pass "
            "more files, or --document_boundary=blank_line"
        )
    if 2 * counts.single > counts.documents:
        found.append(
            f"{counts.single:,} of {counts.documents:,} documents have one "
            "sentence; next sentence prediction needs several"
        )
    return found


def main(argv: list[str]) -> None:
    """Runs the script."""
    values, files = read_flags(argv)
    say(f"reading {len(files):,} files")
    progress = Progress("corpus", sum(map(storage.size, files)) / 1e6, "MB")
    counts = corpus_writer.Counts()
    bad = raw_text.BadLines(values.max_bad_lines, say)
    paragraphs = raw_text.read_paragraphs(
        files,
        values.document_boundary,
        values.text_field,
        lambda size: progress.update(size / 1e6),
        bad.add,
    )
    sentences = raw_text.split_all(
        paragraphs,
        values.language,
        values.num_processes or os.cpu_count() or 1,
    )
    size = corpus_writer.write_text(
        values.output_file,
        corpus_writer.join_documents(sentences, counts, values.input_file),
    )
    if bad.count:
        say(
            f"warning: dropped {bad.count:,} bad lines "
            f"(--max_bad_lines={values.max_bad_lines})"
        )
    if counts.empty:
        say(
            f"note: {counts.empty:,} of {counts.documents + counts.empty:,} "
            "documents have no text and are left out"
        )
    for line in warnings(counts):
        say(f"warning: {line}")
    print(
        f"wrote {counts.sentences:,} sentences of {counts.documents:,} "
        f"documents ({size / 1e6:.1f} MB) to {values.output_file}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
