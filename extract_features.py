r"""Checkpoint + text -> contextual vectors of its pieces, or of each line.

    python extract_features.py --input_file=lines.txt \
        --output_file=vectors.jsonl --vocab_file=vocab.txt \
        --bert_config_file=bert_config.json --init_checkpoint=bert_model.ckpt

A line is a text, or two: `first ||| second`. For sentence vectors:

    --layers=-1 --pooling=mean --normalize --output_format=npz
"""

import dataclasses
import itertools
import re
import sys
from collections.abc import Iterator

from absl import flags

from common import storage
from common.errors import UserError
from common.progress import Progress, say
from data import batching, features, sequences, vector_files
from data.corpus import documents
from data.text import vocabulary
from modeling.config import BertConfig
from modeling.formats import model_folder
from tasks import common_flags, output_dir, text_flags

_WINDOW_BYTES = 1 << 28  # of vectors that wait for their turn
_WINDOW_BATCHES = 64
_LINES_AT_ONCE = 1024


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags: the original's 13 and a few more."""
    for name, meaning in (
        ("input_file", "Text, a line each; `first ||| second` for two."),
        ("output_file", "The file to write."),
        ("bert_config_file", "JSON file with the sizes of the network."),
        ("init_checkpoint", "A checkpoint's prefix, or its folder."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    text_flags.define_text(values)
    common_flags.define_devices(values)
    flags.DEFINE_list(
        "layers",
        "-1,-2,-3,-4",
        "Layers: 0 the first, -1 the last.",
        flag_values=values,
    )
    for name, default, lowest, meaning in (
        ("max_seq_length", 128, 3, "Longer texts are cut."),
        ("batch_size", 32, 1, "Rows of a batch, over all devices."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    for name, choices, meaning in (
        ("output_format", ["jsonl", "npz", "tfrecord"], "Kind of the file."),
        (
            "pooling",
            ["none", "cls", "mean", "max"],
            "One vector a text, from its pieces; none: a vector a piece.",
        ),
        (
            "mix_layers",
            ["none", "sum", "mean", "concat"],
            "One vector from those of --layers; none: one for each.",
        ),
    ):
        flags.DEFINE_enum(
            name, choices[0], choices, meaning, flag_values=values
        )
    for name, meaning in (
        ("normalize", "Scale each vector to length 1."),
        ("use_one_hot_embeddings", "Accepted; changes nothing."),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked."""

    flags: flags.FlagValues
    config: BertConfig
    layers: list[int]
    vocab: dict[str, int]


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    text_flags.check_output_file(values.output_file, "output_file")
    common_flags.list_files(values.input_file, "input_file")
    config = BertConfig.from_json_file(values.bert_config_file)
    vocab = vocabulary.read_vocabulary(values.vocab_file)
    where = values.bert_config_file
    config.check_vocabulary(vocab, values.vocab_file, where)
    config.check_length(values.max_seq_length, "max_seq_length", where)
    output_dir.check_beside(values.init_checkpoint, values.vocab_file)
    layers = [read_layer(x, config.num_hidden_layers) for x in values.layers]
    if not layers:
        raise UserError("--layers is empty", expected="such as -1,-2")
    return Job(values, config, layers, vocab)


def read_layer(text: str, num_layers: int) -> int:
    """A number of --layers: 0 is the first, -1 the last."""
    found = int(text) if re.fullmatch(r"-?\d{1,9}", text) else num_layers
    if not -num_layers <= found < num_layers:
        raise UserError(
            f"--layers: {text!r}",
            expected=f"numbers from {-num_layers} to {num_layers - 1}",
        )
    return found


class Reader:
    """Lines of the input as rows of ids.

    Args:
        job: what to read.

    Attributes:
        truncated: lines that were longer than --max_seq_length so far.
    """

    def __init__(self, job: Job):
        from data.text import fast_tokenization

        self._job, values = job, job.flags
        self._files = common_flags.list_files(values.input_file, "input_file")
        self._max_seq_length = values.max_seq_length
        self._tokenizer = fast_tokenization.FastTokenizer(
            values.vocab_file, values.do_lower_case, values.strip_accents
        )
        self.truncated = 0
        self._position = 0
        self._is_first = True

    def rows(self) -> Iterator[batching.Row]:
        """Yields a row for each line, blank ones too."""
        megabytes = [storage.size(path) / 1e6 for path in self._files]
        progress, done = Progress("vectors", sum(megabytes), "MB"), 0.0
        for path, size in zip(self._files, megabytes, strict=True):
            self._position = 0
            lines = documents.lines(path, self._tell_position)
            while some := list(itertools.islice(lines, _LINES_AT_ONCE)):
                yield from self._tokenize(some)
                progress.update(done + self._position / 1e6)
            done += size

    def _tell_position(self, position: int) -> None:
        self._position = position

    def _tokenize(self, lines: list[str]) -> Iterator[batching.Row]:
        pairs = [re.fullmatch(r"(.*) \|\|\| (.*)", line) for line in lines]
        texts = [
            text
            for line, pair in zip(lines, pairs)
            for text in (pair.groups() if pair else (line, ""))
        ]
        if self._is_first:
            self._is_first = False
            job, some = self._job, filter(None, texts)
            model_folder.warn_vocabulary(job.flags, job.config, some)
        ids = iter(self._tokenizer.ids_of_lines(texts))
        for a, b in zip(ids, ids):
            room = self._max_seq_length - (3 if b else 2)
            self.truncated += len(a) + len(b) > room
            a, b = sequences.truncate_pair(a, b, room)
            vocab = self._tokenizer.vocab
            yield sequences.join_pair(
                a, b, vocab[vocabulary.CLS], vocab[vocabulary.SEP]
            )


def make_predictor(job: Job):
    """The encoder with its checkpoint, and what is made of its layers."""
    import tensorflow as tf

    from modeling import checkpoints, encoder
    from training import distribution, prediction

    values = job.flags
    strategy = distribution.make_strategy(
        **{name: values[name].value for name in common_flags.DEVICE_FLAGS}
    )
    path = checkpoints.resolve(values.init_checkpoint)
    model_folder.check_casing(values.do_lower_case, values.strip_accents, path)
    with strategy.scope():
        model = encoder.build_encoder(job.config)
    fresh = checkpoints.assign(
        checkpoints.encoder_variables(model), checkpoints.read(path), path
    )
    if fresh:
        say(f"not in {path}, and not needed here: {', '.join(fresh)}")

    def vectors(batch):
        outputs = model(batch)
        every = outputs["encoder_outputs"]
        x = tf.stack([every[layer] for layer in job.layers], 2)  # [B, S, K, H]
        if values.mix_layers == "concat":
            x = tf.concat(tf.unstack(x, axis=2), -1)  # [B, S, K * H]
        elif values.mix_layers != "none":
            mix = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}
            x = mix[values.mix_layers](x, 2)
        x = pool(x, batch[features.INPUT_MASK], values.pooling)
        return {"vectors": tf.nn.l2_normalize(x, -1) if values.normalize else x}

    return prediction.Predictor(vectors, strategy, values.batch_size)


def pool(x, mask, pooling: str):
    """One vector for each text.

    Args:
        x: float32 [B, S, ...].
        mask: int32 [B, S], 1 = piece.
        pooling: `cls`: that of the first piece; `mean`, `max`: over all
            pieces, `[CLS]` and `[SEP]` included; `none`.

    Returns:
        float32 [B, ...], or `x`.
    """
    import tensorflow as tf

    if pooling == "none":
        return x
    if pooling == "cls":
        return x[:, 0]
    shape = tf.concat([tf.shape(mask), tf.ones(tf.rank(x) - 2, tf.int32)], 0)
    mask = tf.cast(tf.reshape(mask, shape), x.dtype)
    if pooling == "max":
        return tf.reduce_max(x + (1.0 - mask) * x.dtype.min, 1)
    return tf.reduce_sum(x * mask, 1) / tf.reduce_sum(mask, 1)


def extract(job: Job, reader: Reader) -> Iterator[vector_files.Vectors]:
    """Yields what the output holds of each line, in the order of the input."""
    values = job.flags
    predictor = make_predictor(job)
    tokens = list(job.vocab)

    def run(batch):
        found = predictor(batch)["vectors"]
        lengths = batch[features.INPUT_MASK].sum(1)
        rows = []
        for ids, length, x in zip(batch[features.INPUT_IDS], lengths, found):
            ids = ids[:length].tolist()
            x = x if values.pooling != "none" else x[:length].copy()
            rows.append(vector_files.Vectors([tokens[i] for i in ids], ids, x))
        return rows

    return batching.in_order(
        reader.rows(),
        run,
        batching.bucket_lengths(values.max_seq_length),
        values.batch_size,
        window(job),
    )


def window(job: Job) -> int:
    """Lines that are sorted by length at a time; their vectors must fit."""
    size = 4 * len(job.layers) * job.config.hidden_size
    if job.flags.pooling == "none":
        size *= job.flags.max_seq_length
    batches = _WINDOW_BYTES // (size * job.flags.batch_size)
    return job.flags.batch_size * max(1, min(_WINDOW_BATCHES, batches))


def write(job: Job, reader: Reader) -> int:
    """Writes the output; returns the number of lines."""
    values = job.flags
    with vector_files.Writer(
        values.output_file,
        values.output_format,
        job.layers if values.mix_layers == "none" else None,
        values.pooling != "none",
    ) as writer:
        for vectors in extract(job, reader):
            writer.write(vectors)
        if not writer.count:
            raise UserError(
                "no line", path=values.input_file, expected="text, a line each"
            )
        return writer.count


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    values = job.flags
    reader = Reader(job)
    try:
        count = write(job, reader)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=values.output_file
        ) from None
    if reader.truncated:
        say(
            f"{reader.truncated:,} lines were cut to {values.max_seq_length} "
            "pieces; see --max_seq_length"
        )
    what = "vectors" if values.pooling != "none" else "vectors of the pieces"
    print(f"wrote the {what} of {count:,} lines to {values.output_file}")


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
