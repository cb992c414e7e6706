"""Prepares a corpus from raw text: settings, input files, warnings."""

import contextlib
import dataclasses
import os
import zlib

from bert.common import outputs, processes, storage
from bert.common.errors import UserError, name_of
from bert.common.flags import BaseSettings, flag
from bert.common.formats import endings
from bert.common.progress import counted, log
from bert.common.rules import rule
from bert.data.corpus import corpus_writer, raw_text


def _check_language(name: str) -> None:
    """Raises a UserError for a language without splitting rules."""
    fix = "pass the most similar language, or en"
    if name == "th":
        fix = (
            "Thai has no marks between sentences: instead of this script, "
            "write one sentence per line with a Thai tool, such as PyThaiNLP, "
            "and a blank line after each document"
        )
    if name not in raw_text.LANGUAGES:
        raise UserError(
            f"--language={name!r} is unknown",
            expected=f"one of {', '.join(raw_text.LANGUAGES)}",
            fix=fix,
        )


def _check_outputs(settings: "Settings") -> None:
    """Raises a UserError if an output cannot be written."""
    for output in settings.outputs if settings.output_file else ():
        outputs.check_file(output, "output_file")


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Settings of prepare_corpus.py."""

    RULES = [
        rule("The outputs can be written.", _check_outputs, "output_file=/"),
    ]

    input_file: str = flag(
        None,
        "Raw text: files, globs, folders, comma-separated.",
        required=True,
        path=True,
    )
    output_file: str = flag(
        None,
        "The corpus to write; compressed if it ends in .gz.",
        required=True,
        path=True,
    )
    held_out: float = flag(
        0.0,
        "Fraction of the documents to write to a second file, for evaluation: "
        "corpus_held_out.txt beside corpus.txt.",
        at_least=0.0,
        at_most=0.5,
    )
    random_seed: int = flag(12345, "Seed of the choice of held-out documents.")
    document_boundary: str = flag(
        "file",
        "Unit of plain text that is a document: a file or a paragraph.",
        choices=("file", "blank_line"),
    )
    text_field: str = flag(
        "text", "Field of JSON lines, or column of Parquet, with the text."
    )
    language: str = flag(
        "en",
        "Language of the sentence splitting rules: "
        f"{' '.join(raw_text.LANGUAGES)}.",
        parse=_check_language,
    )
    max_bad_lines: int = flag(
        0,
        "Maximum number of unreadable lines to drop before failing.",
        at_least=0,
    )
    num_processes: int | None = flag(
        None,
        "Number of processes that split sentences; default: one per core.",
        at_least=1,
    )

    @property
    def outputs(self) -> list[str]:
        """Path of the corpus and, with --held_out, of the second file."""
        # corpus.txt.gz -> corpus_held_out.txt.gz
        stem, dot, ending = os.path.basename(self.output_file).partition(".")
        name = f"{stem}_held_out{dot}{ending}"
        second = os.path.join(os.path.dirname(self.output_file), name)
        return [self.output_file, second][: 2 if self.held_out else 1]

    def file_of(self, document: int) -> int:
        """Returns the index of the output file of a document."""
        # By a hash, so that the choice depends only on the number and the seed.
        drawn = zlib.crc32(f"{self.random_seed} {document}".encode())
        return int(drawn < self.held_out * (1 << 32))


def list_inputs(settings: Settings) -> list[str]:
    """Lists the files of `--input_file`: paths, globs and folders.

    Args:
        settings: Settings. Settings of the script.

    Returns:
        list of str. Paths of the files.

    Raises:
        UserError: A pattern matches no file, a folder has no text file, or
            an output is among the inputs.
    """
    files = []
    for pattern in settings.input_file.split(","):
        exists = storage.exists(pattern)  # a file name may look like a glob
        matches = [pattern] if exists else storage.glob(pattern)
        for match in matches or storage.list_files(pattern, "input_file"):
            is_folder = storage.is_folder(match)
            files += _texts_below(match) if is_folder else [match]

    # Otherwise the corpus would replace the raw text.
    outputs.check_no_input(settings.outputs, files)

    # This is allowed, but ids and labels become part of the sentences.
    tables = [x for x in files if endings.format_of(x) in ("csv", "tsv")]
    if tables:
        log(
            "warning: tables are read as text, with all columns: "
            f"{name_of(tables)}; write the texts to a .txt or .jsonl "
            "file"
        )

    # Keys and tags would be learned as words.
    markup = [x for x in files if raw_text.is_marked_up(x)]
    if markup:
        log(
            "warning: JSON or markup is read as plain text: "
            f"{name_of(markup)}; WikiExtractor makes JSON lines with "
            "--json, which need names such as wiki.jsonl"
        )
    return files


def _texts_below(folder: str) -> list[str]:
    """Lists the text files below a folder, except hidden files."""
    files = [
        path
        for path in storage.files_below(folder)
        if "/." not in f"/{os.path.relpath(path, folder)}"
        # Skips pipes and broken links.
        and (storage.is_remote(path) or storage.is_file(path))
    ]

    # A folder may also have images or archives.
    binary = [path for path in files if raw_text.is_binary(path)]
    if binary:
        log(f"note: skipped binary files: {name_of(binary)}")

    texts = [path for path in files if path not in set(binary)]
    if not texts:
        raise UserError("no text file in this folder", path=folder)
    return texts


def prepare(
    settings: Settings, files: list[str]
) -> list[tuple[str, corpus_writer.CorpusCounts, int]]:
    """Writes the corpus and logs warnings about it.

    Args:
        settings: Settings. Settings of the script.
        files: list of str. Result of `list_inputs`.

    Returns:
        list of (path, counts, size). Path, counts and text size in bytes of
        each output.

    Raises:
        UserError: A file cannot be read or written, the inputs have no text,
            or --held_out selects no or all documents.
    """
    log(f"reading {counted(len(files), 'file')}")
    outputs = settings.outputs
    counts = [corpus_writer.CorpusCounts() for _ in outputs]
    sizes = [0 for _ in outputs]

    # These are generators: reading starts in the loop below.
    bad = raw_text.BadLines(settings.max_bad_lines, log)
    paragraphs = raw_text.read_paragraphs(
        files,
        settings.document_boundary,
        settings.text_field,
        bad.add,
    )
    sentences = raw_text.split_all(
        paragraphs,
        settings.language,
        settings.num_processes or processes.num_cores(),
    )

    # Sentences are streamed, so memory does not grow with the corpus.
    with contextlib.ExitStack() as stack:
        write = [
            stack.enter_context(corpus_writer.open_text(x)) for x in outputs
        ]
        for i, text in corpus_writer.join_documents(
            sentences, counts, settings.file_of, settings.input_file
        ):
            sizes[i] += write[i](text)

        # Raised inside the context, so that neither file appears.
        chosen = [x.documents for x in counts]
        if not all(chosen):
            raise UserError(
                f"--held_out={settings.held_out}: {chosen[1]} of "
                f"{sum(chosen)} documents",
                expected="at least one in each file",
                fix="pass another fraction, more documents, or "
                "--document_boundary=blank_line",
            )

    # Log dropped lines and documents, and warnings.
    if bad.count:
        log(
            f"warning: dropped {bad.count:,} bad lines "
            f"(--max_bad_lines={settings.max_bad_lines})"
        )
    empty = sum(x.empty for x in counts)
    if empty:
        log(
            f"note: {empty:,} of {sum(chosen) + empty:,} "
            "documents have no text and are dropped"
        )

    fractions = [x[-1] / sum(x) for x in (chosen, sizes)]
    for line in warnings(counts[0], *fractions):
        log(f"warning: {line}")
    return list(zip(outputs, counts, sizes))


def warnings(
    counts: corpus_writer.CorpusCounts,
    share_of_documents: float,
    share_of_text: float,
) -> list[str]:
    """Returns warnings about a corpus that is unsuitable for training.

    Args:
        counts: CorpusCounts. Counts of the corpus.
        share_of_documents: float. Fraction of the documents that is held out;
            1 without --held_out.
        share_of_text: float. Fraction of the text that is held out; 1 without
            --held_out.
    """
    # With documents of similar size, both fractions are similar.
    lines = []
    if not 0.5 < share_of_text / share_of_documents < 2:
        lines.append(
            f"{share_of_documents:.1%} of the documents are held out, but "
            f"{share_of_text:.1%} of the text: few documents have most of it; "
            "--document_boundary=blank_line divides files"
        )

    # A random next sentence comes from another document.
    if counts.documents == 1:
        lines.append(
            "one document; next sentence prediction needs two or more: pass "
            "more files, or --document_boundary=blank_line"
        )

    # Both sentences of a true pair come from one document.
    if 2 * counts.single > counts.documents:
        lines.append(
            f"{counts.single:,} of {counts.documents:,} documents have one "
            "sentence; next sentence prediction needs several"
        )
    return lines
