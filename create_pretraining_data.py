"""Corpus + vocabulary -> TFRecord shards of masked sentence pairs.

The corpus has one sentence a line and a blank line between documents; files
that end in .gz are decompressed. Example:

    python create_pretraining_data.py --input_file='wiki/*.txt.gz' \
        --output_file=records/wiki.tfrecord --vocab_file=vocab.txt
"""

import dataclasses
import os
import random
import sys

from absl import flags

import common_flags
import text_flags
from data import corpus as corpus_lib
from data import manifest, pretraining, tokenization, vocabulary
from errors import UserError
from progress import Progress, say


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, meaning in (
        ("input_file", "Corpus: files and globs, separated by commas."),
        ("output_file", "TFRecord files to write, separated by commas."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    text_flags.define_text(values)
    common_flags.define_lengths(values)
    common_flags.define_seed(values)
    flags.DEFINE_bool(
        "do_whole_word_mask",
        False,
        "Mask all pieces of a word or none.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "dupe_factor",
        10,
        "How often the corpus is gone through, with other masks.",
        flag_values=values,
        lower_bound=1,
    )
    for name, default, meaning in (
        ("masked_lm_prob", 0.15, "Share of the pieces that is masked."),
        ("short_seq_prob", 0.1, "Share of documents cut into short rows."),
    ):
        flags.DEFINE_float(
            name,
            default,
            meaning,
            flag_values=values,
            lower_bound=0.0,
            upper_bound=1.0,
        )


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for."""

    input_files: list[str]
    output_files: list[str]
    vocab_file: str
    do_lower_case: bool
    settings: pretraining.Settings


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    outputs = values.output_file.split(",")
    folders = {os.path.dirname(os.path.abspath(path)) for path in outputs}
    if len(folders) > 1 or len(set(outputs)) < len(outputs):
        raise UserError(
            f"--output_file={values.output_file}",
            expected="different files in one folder",
        )
    if any(not path or os.path.isdir(path) for path in outputs):
        raise UserError(
            f"--output_file={values.output_file!r} names a folder",
            expected="a file name, such as folder/wiki.tfrecord",
        )
    manifest.read_runs(folders.pop())  # a damaged one is told now
    return Job(
        input_files=common_flags.list_files(values.input_file, "input_file"),
        output_files=outputs,
        vocab_file=values.vocab_file,
        do_lower_case=values.do_lower_case,
        settings=pretraining.Settings(
            **{
                field.name: values[field.name].value
                for field in dataclasses.fields(pretraining.Settings)
            }
        ),
    )


class Statistics:
    """Counts what went into the records."""

    def __init__(self):
        self.counts = dict.fromkeys(
            ("documents", "sentences", "tokens", "unknown_tokens")
            + ("instances", "random_next", "row_tokens", "masked_tokens"),
            0,
        )

    def add_documents(self, documents: list, unknown_id: int) -> None:
        """Counts a bucket's documents."""
        self.counts["documents"] += len(documents)
        for document in documents:
            self.counts["sentences"] += len(document)
            self.counts["tokens"] += sum(map(len, document))
            self.counts["unknown_tokens"] += sum(
                sentence.count(unknown_id) for sentence in document
            )

    def add_instances(self, instances: list[pretraining.Instance]) -> None:
        """Counts instances."""
        self.counts["instances"] += len(instances)
        for instance in instances:
            self.counts["random_next"] += instance.is_random_next
            self.counts["row_tokens"] += len(instance.ids)
            self.counts["masked_tokens"] += len(instance.masked_lm_ids)

    def report(self, max_seq_length: int) -> str:
        """One line with the shares that a user should look at."""
        c = self.counts
        rows = c["instances"] * max_seq_length
        return (
            f"{c['documents']:,} documents, {c['sentences']:,} sentences, "
            f"{c['tokens']:,} tokens "
            f"({c['unknown_tokens'] / c['tokens']:.2%} [UNK]); "
            f"{c['instances']:,} instances, {c['row_tokens'] / rows:.1%} full, "
            f"{c['masked_tokens'] / c['row_tokens']:.1%} masked, "
            f"{c['random_next'] / c['instances']:.1%} random next"
        )


def tokenize_bucket(
    path: str, tokenizer: tokenization.FullTokenizer
) -> list[pretraining.Document]:
    """Reads a bucket's documents as ids; empty ones are left out."""
    documents = []
    for lines in corpus_lib.documents(path):
        sentences = [
            tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line))
            for line in lines
        ]
        sentences = [sentence for sentence in sentences if sentence]
        if sentences:
            documents.append(sentences)
    return documents


def bucket_records(
    documents: list[pretraining.Document],
    bucket: int,
    job: Job,
    masking: pretraining.Vocabulary,
    statistics: Statistics,
    progress: Progress,
) -> list[bytes]:
    """All copies of a bucket's instances, shuffled and serialized."""
    from data import records

    serialized: list[bytes] = []
    copies = job.settings.dupe_factor
    for copy in range(copies):
        instances = pretraining.bucket_instances(
            documents, copy, bucket, job.settings, masking
        )
        statistics.add_instances(instances)
        arrays = pretraining.to_arrays(instances, job.settings)
        serialized += records.encode_examples(arrays)
        count = statistics.counts["instances"]
        progress.update(bucket * copies + copy + 1, f", {count:,} records")
    seed = f"{job.settings.random_seed}/{bucket}/shuffle"
    random.Random(seed).shuffle(serialized)
    return serialized


def write_records(
    job: Job, corpus: corpus_lib.Corpus, tokenizer: tokenization.FullTokenizer
) -> Statistics:
    """Makes the records of every bucket and writes shards and manifest."""
    from data import records

    masking = pretraining.Vocabulary.of(tokenizer.vocab)
    statistics = Statistics()
    with records.ShardWriter(job.output_files) as writer:
        paths = corpus_lib.deal(
            corpus, job.settings.random_seed, writer.scratch
        )
        passes = len(paths) * job.settings.dupe_factor
        progress = Progress("records", passes, "passes")
        for bucket, path in enumerate(paths):
            documents = tokenize_bucket(path, tokenizer)
            check_documents(len(documents), job)
            statistics.add_documents(documents, tokenizer.vocab[vocabulary.UNK])
            writer.write_part(
                bucket_records(
                    documents, bucket, job, masking, statistics, progress
                )
            )
        shards = writer.finish(job.settings.random_seed)
    run = {
        **dataclasses.asdict(job.settings),
        "do_lower_case": job.do_lower_case,
        "vocab_size": masking.size,
        "input_files": [os.path.basename(p) for p in job.input_files],
        "statistics": statistics.counts,
    }
    manifest.write_manifest(writer.folder, shards, job.vocab_file, run)
    return statistics


def check_documents(count: int, job: Job) -> None:
    """Refuses a corpus that has no other document to draw from."""
    if count < 2:
        raise UserError(
            f"{count} document with text",
            path=",".join(job.input_files),
            expected="at least 2: a random next sentence comes from another "
            "document",
            fix="put a blank line between documents",
        )


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    tokenizer = tokenization.FullTokenizer(job.vocab_file, job.do_lower_case)
    say(f"reading {len(job.input_files)} files")
    corpus = corpus_lib.scan(job.input_files)
    check_documents(len(corpus.document_bytes), job)
    statistics = write_records(job, corpus, tokenizer)
    print(statistics.report(job.settings.max_seq_length))
    print(
        f"wrote {statistics.counts['instances']:,} records to "
        f"{', '.join(job.output_files)}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
