r"""A BERT's weights from one format to another: all heads, and checked.

    python convert_checkpoint.py --from=huggingface --input=minilm \
        --to=google --output=minilm_google

The outputs of both sides are compared before anything gets its name.
"""

import dataclasses
import json
import os
import shutil
import sys

from absl import flags

from common.errors import UserError
from common.progress import say
from common.storage import sync_and_hash, write_whole
from data import features
from data.text import (
    tokenization,
    tokenizer_files,
    vocabulary,
    vocabulary_slots,
)
from modeling.config import BertConfig
from modeling.formats import model_folder
from modeling.formats.conversion import Bert, read_hub
from tasks import common_flags, output_dir, text_flags
from tasks.ner import entities

SOURCES = ("google", "huggingface", "model_garden", "hub")
TARGETS = ("google", "huggingface", "model_garden")
TOLERANCE = 1e-4  # of outputs, float32
_SCRATCH = ".partial-conversion"


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, choices, meaning in (
        ("from", SOURCES, "Format of the input."),
        ("to", TARGETS, "Format of the output."),
    ):
        flags.DEFINE_enum(
            name, None, choices, meaning, flag_values=values, required=True
        )
    for name, required, meaning in (
        ("input", True, "Folder of the model, or a checkpoint's prefix."),
        ("output", True, "Folder to write to."),
        ("bert_config_file", False, "Default: beside the input."),
        ("vocab_file", False, "Default: beside the input."),
        ("extend_vocab", False, "File of words to add, one a line."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=required
        )
    text_flags.define_case(
        values, None, "Default: as the input says, or as its vocabulary looks."
    )
    flags.DEFINE_integer(
        "extend_positions",
        None,
        "Rows this long: the position embeddings are repeated.",
        flag_values=values,
        lower_bound=1,
    )


def read_flags(argv: list[str]) -> flags.FlagValues:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not os.path.exists(values.input) and values["from"].value in (
        "huggingface",
        "hub",
    ):
        raise UserError("no such folder", path=values.input)
    output = values.output
    if os.path.exists(output) and not os.path.isdir(output):
        raise UserError("is a file", path=output, expected="a folder")
    found = os.listdir(output) if os.path.isdir(output) else []
    if set(found) - {_SCRATCH}:
        raise UserError(
            f"holds {min(set(found) - {_SCRATCH})}",
            path=output,
            expected="an empty folder or none",
            fix="pass another --output",
        )
    return values


def read_google(path: str, config_file: str | None) -> Bert:
    """Reads a checkpoint of the original's format, ours included."""
    from modeling import checkpoints

    prefix = checkpoints.resolve(path)
    config = model_folder.find(
        prefix, "bert_config.json", config_file, "bert_config_file"
    )
    values = checkpoints.read(prefix)
    known = {n: v for n, v in values.items() if n.startswith(checkpoints.KNOWN)}
    return Bert(
        prefix,
        BertConfig.from_json_file(config),
        known,
        sorted(values.keys() - known.keys()),
        None,
        *model_folder.recorded_casing(prefix),
        task=model_folder.task_of(prefix),
    )


def read_huggingface(path: str, config_file: str | None) -> Bert:
    """Reads a folder of transformers."""
    from modeling.formats import huggingface

    tokenizer = tokenizer_files.read(path)
    if config_file:
        config = BertConfig.from_json_file(config_file)
    else:
        config = huggingface.read_config(os.path.join(path, huggingface.CONFIG))
    values, left_out = huggingface.read(path)
    bert = Bert(path, config, values, left_out, *tokenizer)
    bert.task = huggingface.read_task(path)
    if bert.task and bert.task["kind"] is None:
        marked = all(map(entities.is_entity_label, bert.task["labels"]))
        bert.task["kind"] = entities.ENTITIES if marked else entities.ANY
    return bert


def read_model_garden(path: str, config_file: str | None) -> Bert:
    """Reads a checkpoint of Model Garden."""
    from modeling import checkpoints
    from modeling.formats import model_garden

    prefix = checkpoints.resolve(path)
    config = model_folder.find(
        prefix, "bert_config.json", config_file, "bert_config_file"
    )
    values, left_out = model_garden.read(prefix)
    return Bert(
        prefix,
        BertConfig.from_json_file(config),
        values,
        left_out,
        None,
        *model_folder.recorded_casing(prefix),
        task=model_folder.task_of(prefix),
    )


READERS = {
    "google": read_google,
    "huggingface": read_huggingface,
    "model_garden": read_model_garden,
    "hub": read_hub,
}


def find_vocabulary(bert: Bert, path: str, vocab_file: str | None) -> None:
    """Sets the model's tokens and casing, if they are to be found."""
    beside = os.path.join(model_folder.folder_of(path), "vocab.txt")
    if vocab_file or (bert.tokens is None and os.path.isfile(beside)):
        bert.tokens = list(vocabulary.read_vocabulary(vocab_file or beside))
    if bert.tokens is None:
        say("warning: no vocabulary beside the input; none is written")
        return
    if vocab_file:
        output_dir.check_beside(path, vocab_file)
    bert.config.check_vocabulary(
        bert.tokens, vocab_file or bert.path, bert.path
    )
    if bert.do_lower_case is None:
        bert.do_lower_case = model_folder.guess_casing(bert.tokens)


def add_words(bert: Bert, path: str) -> None:
    """Gives the words of a file rows of their own."""
    from modeling.formats import extend_embeddings

    if bert.tokens is None:
        raise UserError("no vocabulary", path=bert.path, fix="--vocab_file")
    ids = {token: i for i, token in enumerate(bert.tokens)}
    split = tokenization.BasicTokenizer(
        bert.do_lower_case, bert.strip_accents
    ).tokenize
    pieces_of = tokenization.WordpieceTokenizer(ids).tokenize
    words = vocabulary_slots.read_words(path)
    new = [word for word in words if word not in ids]
    for word in new:
        if split(word) != [word]:
            raise UserError(
                f"{word!r} is split into {' '.join(split(word))!r}",
                path=path,
                expected="a word that the tokenizer keeps whole",
            )
    tokens, rows = vocabulary_slots.place_words(bert.tokens, new)
    pieces = [[ids[piece] for piece in pieces_of(word)] for word in new]
    reused = sum(row < len(bert.tokens) for row in rows)
    bert.values = extend_embeddings.extend_vocabulary(bert.values, rows, pieces)
    size = len(bert.values["bert/embeddings/word_embeddings"])
    bert.config = dataclasses.replace(bert.config, vocab_size=size)
    bert.tokens = tokens
    say(
        f"added {len(new)} words: {reused} in unused rows, "
        f"{len(new) - reused} in new ones; {len(words) - len(new)} were there"
    )


def add_positions(bert: Bert, length: int) -> None:
    """Repeats the position embeddings."""
    from modeling.formats import extend_embeddings

    old = bert.config.max_position_embeddings
    if length <= old:
        raise UserError(
            f"--extend_positions={length}", expected=f"more than {old}"
        )
    bert.values = extend_embeddings.extend_positions(bert.values, length)
    bert.config = dataclasses.replace(
        bert.config, max_position_embeddings=length
    )


def outputs_of(bert: Bert) -> dict:
    """Outputs of the encoder and of every head on seeded rows.

    Raises:
        UserError: a variable of the encoder is missing or of another shape.
    """
    import numpy as np

    from modeling import checkpoints, heads, models

    config, values = bert.config, bert.values
    model = models.build_pretraining_model(config)
    checkpoints.assign(checkpoints.model_variables(model), values, bert.path)
    batch = seeded_rows(config)
    encoder = model.get_layer("bert")
    vectors = encoder({name: batch[name] for name in encoder.input})
    outputs = {"sequence_output": vectors["sequence_output"], **model(batch)}
    for name, vector in (
        ("classifier", "pooled_output"),
        ("squad", "sequence_output"),
        ("ner", "sequence_output"),
        ("swag", "pooled_output"),
    ):
        scope = checkpoints.OUTPUT_HEADS[name]
        if f"{scope}output_weights" in values:
            labels = len(values[f"{scope}output_weights"])
            head = heads.OutputHead(config, 0, labels, name, name != "swag")
            named = {f"{scope}output_weights": head.output_weights}
            if head.output_bias is not None:
                named[f"{scope}output_bias"] = head.output_bias
            checkpoints.assign(named, values, bert.path, required=(scope,))
            outputs[name] = head(vectors[vector])
    return {name: np.array(value) for name, value in outputs.items()}


def seeded_rows(config: BertConfig) -> dict:
    """A batch of 4 rows with padding and two segments."""
    import numpy as np

    rng = np.random.default_rng(0)
    length = min(config.max_position_embeddings, 32)
    real = np.array([[length], [length - 1], [2], [1]])
    mask = np.arange(length) < real  # [4, length]
    rows = {
        features.INPUT_IDS: rng.integers(0, config.vocab_size, mask.shape),
        features.INPUT_MASK: mask,
        features.SEGMENT_IDS: (np.arange(length) > length // 2) & mask,
        features.MASKED_LM_POSITIONS: rng.integers(0, length, (4, 2)),
    }
    return {name: value.astype(np.int32) for name, value in rows.items()}


def write(bert: Bert, target: str, folder: str) -> None:
    """Writes a model's files into an empty folder."""
    from common import tensor_files
    from modeling.formats import huggingface, model_garden

    if target == "huggingface":
        huggingface.write(folder, bert.config, bert.values, bert.task)
    elif target == "model_garden":
        prefix = os.path.join(folder, model_garden.PREFIX)
        model_garden.write(prefix, bert.config, bert.values)
    else:
        tensor_files.write(os.path.join(folder, "bert_model.ckpt"), bert.values)
    if target != "huggingface":
        write_whole(
            os.path.join(folder, "bert_config.json"), bert.config.to_json()
        )
        has_labels = any(
            f"{scope}output_weights" in bert.values
            for scope in ("", "cls/ner/")
        )
        if bert.task is not None and has_labels:
            described = json.dumps(bert.task, indent=2, ensure_ascii=False)
            write_whole(os.path.join(folder, "task.json"), f"{described}\n")
    if bert.tokens is not None:
        vocabulary.write_vocabulary(
            os.path.join(folder, "vocab.txt"), bert.tokens
        )
        tokenizer_files.write_config(
            folder, bert.do_lower_case, bert.strip_accents
        )


def largest_difference(before: dict, after: dict) -> float:
    """The largest absolute difference of any output."""
    return max(float(abs(before[name] - after[name]).max()) for name in before)


def convert(bert: Bert, target: str, output: str) -> float:
    """Writes a model, reads it back, compares, and gives the files names.

    Returns:
        the largest difference of the outputs of both sides.

    Raises:
        UserError: they differ by more than `TOLERANCE`, or the disk is full.
    """
    before = outputs_of(bert)
    scratch = os.path.join(output, _SCRATCH)
    try:
        os.makedirs(scratch, exist_ok=True)
        write(bert, target, scratch)
        written = READERS[target](scratch, None)
        difference = largest_difference(before, outputs_of(written))
        if not difference <= TOLERANCE:
            raise UserError(
                f"outputs differ by {difference:.1e} after conversion",
                path=bert.path,
                expected=f"at most {TOLERANCE:.0e}",
            )
        for file in sorted(os.listdir(scratch)):
            sync_and_hash(os.path.join(scratch, file))
            os.replace(os.path.join(scratch, file), os.path.join(output, file))
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=output
        ) from None
    finally:
        if os.path.isdir(scratch):
            shutil.rmtree(scratch)
            if not os.listdir(output):
                os.rmdir(output)
    return difference


def main(argv: list[str]) -> None:
    """Runs the script."""
    values = read_flags(argv)
    bert = READERS[values["from"].value](values.input, values.bert_config_file)
    if values.do_lower_case is not None:
        bert.do_lower_case = values.do_lower_case
    if values.strip_accents is not None:
        bert.strip_accents = values.strip_accents
    find_vocabulary(bert, values.input, values.vocab_file)
    if values.extend_vocab:
        add_words(bert, values.extend_vocab)
    if values.extend_positions:
        add_positions(bert, values.extend_positions)
    if bert.left_out:
        say(f"left out: {', '.join(bert.left_out)}")
    if not any(name.startswith("bert/pooler/") for name in bert.values):
        say("warning: the input has no pooler; fine-tuning starts it fresh")
    difference = convert(bert, values.to, values.output)
    heads = [name for name, there in found_heads(bert.values) if there]
    count = sum(value.size for value in bert.values.values())
    say(f"largest difference of the outputs of both sides: {difference:.1e}")
    print(
        f"wrote {len(bert.values)} variables ({count:,} numbers; "
        f"{', '.join(['encoder', *heads])}) to {values.output}"
    )


def found_heads(values: dict) -> list[tuple[str, bool]]:
    """The heads that a model may have, and whether this one has them."""
    return [
        ("pooler", "bert/pooler/dense/kernel" in values),
        ("masked LM", "cls/predictions/output_bias" in values),
        ("next sentence", "cls/seq_relationship/output_bias" in values),
        ("classifier", "output_bias" in values),
        ("span", "cls/squad/output_bias" in values),
        ("labels of words", "cls/ner/output_bias" in values),
        ("multiple choice", "cls/swag/output_weights" in values),
    ]


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
