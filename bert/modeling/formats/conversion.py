"""Conversion of BERT weights between formats, including all heads."""

import dataclasses
import os
import re

import numpy as np

from bert.common import atomic, tensor_files
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import features
from bert.data.text import tokenizer_files, vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints
from bert.modeling.config import BertConfig
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    portable,
    sentence_files,
)
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import (
    HEADS,
    MASKED_LM,
    PRETRAINING,
    head_of,
    heads_of,
)

TOLERANCE = 1e-4  # absolute difference of outputs in float32
_WEIGHT = re.compile(
    r"(bert|cls)/.+/(\w+_embeddings|kernel|bias|gamma|beta"
    r"|output_weights|output_bias)|output_(weights|bias)"
)  # optimizers of other projects add names below these
_LOST = {  # task.json entries without a field in transformers' config
    "decision": "thresholds, temperature and --unknown_below: predictions will "
    "only depend on the logits",
    "truncate": "--truncate: the first tokens of longer texts will be kept",
    "windows": "windows: longer texts will be truncated",
}


@dataclasses.dataclass
class Bert:
    """A model, independent of any format.

    Attributes:
        path: str. Path of the input, for messages.
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> float32 array.
        skipped: list of str. Names of variables that are not part of a BERT.
        tokenizer: Tokenizer or None. Vocabulary and casing.
        task: dict or None. Kind and names of the labels, as in `task.json`.
        vectors: TextVectors or None. Pooling that computes an embedding of a
            text, if it is recorded.
    """

    path: str
    config: BertConfig
    values: dict
    skipped: list[str]
    tokenizer: Tokenizer | None = None
    task: dict | None = None
    vectors: sentence_files.TextVectors | None = None


def read(model: ModelFolder) -> Bert:
    """Reads a model; flags for the casing override the recorded one.

    Args:
        model: ModelFolder. Model to read.

    Raises:
        UserError: a file is damaged, or the vocabulary does not fit.
    """
    tokenizers = model.tokenizers  # before weights, which take longer
    model.check_sizes()
    values, skipped = model.weights()

    # A checkpoint may also contain optimizer slots and the step.
    if model.format == "google":
        names = set(values)
        values = {
            name: value
            for name, value in values.items()
            if name.startswith(checkpoints.KNOWN) and _WEIGHT.fullmatch(name)
        }
        skipped = sorted(names - values.keys())

    bert = Bert(
        model.resolve(),
        model.config,
        values,
        skipped,
        task=model.task,
        vectors=model.vectors,
    )
    if not tokenizers:
        say("warning: no vocabulary beside the input, so none is written")
        return bert
    bert.tokenizer = model.tokenizer.with_max_length(model.max_length)

    bert.config.check_vocabulary(
        model.tokenizer.tokens, model.tokenizer.path, model.config_file
    )
    return bert


def outputs_of(bert: Bert) -> dict:
    """Computes the outputs of the encoder and of each head on seeded inputs.

    Args:
        bert: Bert. The model.

    Returns:
        Dict: name -> float32 array.

    Raises:
        UserError: a variable of the encoder is missing or has another shape.
    """
    config, values = bert.config, bert.values
    given, encoders = (config, values, bert.path), checkpoints.ENCODER
    model = checkpoints.load_network(*given, MASKED_LM, encoders)
    batch = seeded_inputs(config)

    encoder = model.get_layer("bert")
    vectors = encoder({name: batch[name] for name in encoder.input})
    outputs = {"sequence_output": vectors["sequence_output"], **model(batch)}

    # The pre-training model has no task heads: each is called separately.
    for name in heads_of(values):
        if name not in PRETRAINING:
            head = checkpoints.load_network(*given, name, encoder=encoder)
            is_pooled = HEADS[name].is_pooled
            x = vectors["pooled_output" if is_pooled else "sequence_output"]
            outputs[name] = head.get_layer(name)(x)

    return {name: np.array(value) for name, value in outputs.items()}


def seeded_inputs(config: BertConfig, length: int | None = None) -> dict:
    """Random batch of 4 sequences with padding and two segments.

    Args:
        config: BertConfig. Sizes of the network.
        length: int or None. S. Default: None, 32, or the maximum length of the
            network if it is lower.

    Returns:
        Dict: feature name -> int32 array, [4, S] or [4, 2].
    """
    rng = np.random.default_rng(0)
    length = length or min(config.max_position_embeddings, 32)

    # From no padding to almost only padding.
    real = np.array([[length], [length - 1], [2], [1]])
    mask = np.arange(length) < real  # [4, length]

    inputs = {
        features.INPUT_IDS: rng.integers(0, config.vocab_size, mask.shape),
        features.INPUT_MASK: mask,
        features.SEGMENT_IDS: (np.arange(length) > length // 2) & mask,
        features.MASKED_LM_POSITIONS: rng.integers(0, length, (4, 2)),
    }

    return {name: value.astype(np.int32) for name, value in inputs.items()}


def write(bert: Bert, target: str, folder: str) -> None:
    """Writes the files of a model to an empty folder."""
    if target == "huggingface":
        huggingface.write(folder, bert.config, bert.values, bert.task)
        for entry, lost in _LOST.items():
            if entry in (bert.task or {}):
                say(f"warning: config.json has no field for {lost}")
    elif target == "google":  # `convert` writes the formats of `portable`
        tensor_files.write(os.path.join(folder, "bert_model.ckpt"), bert.values)

    write_files(bert, folder, target == "huggingface")


def write_files(bert: Bert, folder: str, is_theirs: bool = False) -> None:
    """Writes all files of a model except its weights.

    Args:
        bert: Bert. The model.
        folder: str. Folder to write to.
        is_theirs: bool. Whether to write the files of transformers, whose
            config.json contains the sizes and labels. Default: False.
    """
    if not is_theirs:
        write_whole(
            os.path.join(folder, "bert_config.json"), bert.config.to_json()
        )
        if bert.task is not None and head_of(bert.values):
            checkpoint_files.write_task(folder, bert.task)

    if bert.vectors and bert.tokenizer:
        sentence_files.write(
            folder,
            bert.vectors,
            bert.config.hidden_size,
            bert.tokenizer.max_length,
        )

    if bert.tokenizer is not None:
        tokens = bert.tokenizer.tokens
        vocabulary.write_vocabulary(os.path.join(folder, "vocab.txt"), tokens)
        casing = bert.tokenizer.casing

        # Transformers needs a length; otherwise only a shorter one is written.
        positions = bert.config.max_position_embeddings
        longest = min(
            bert.tokenizer.max_length,
            (bert.task or {}).get("max_seq_length", positions),
            positions,
        )
        is_recorded = is_theirs or longest < positions
        tokenizer_files.write_config(
            folder, casing, longest if is_recorded else None
        )
        if is_theirs:
            tokenizer_files.write_pipeline(folder, tokens, casing)


def largest_difference(before: dict, after: dict) -> float:
    """Largest absolute difference of any output; NaN if an output is NaN."""
    differences = [abs(before[name] - after[name]).max() for name in before]
    return float(np.max(differences))  # Python's max may lose a NaN


def convert(bert: Bert, target: str, output: str) -> float:
    """Writes a model, and compares its outputs before renaming the files.

    Args:
        bert: Bert. The model.
        target: str. Format, see `conversion_settings`.
        output: str. Folder to write to.

    Returns:
        The largest difference between the outputs of both models.

    Raises:
        UserError: the difference exceeds `TOLERANCE`, or the disk is full.
    """
    if bert.vectors:
        bert.vectors.check()
    before = {} if target in portable.FILES else outputs_of(bert)
    with atomic.whole_folder(output) as scratch:
        write(bert, target, scratch)
        if target in portable.FILES:
            model = portable.build(bert.config, bert.values, bert.path)
            inputs = seeded_inputs(bert.config)
            before, after = portable.write(bert, model, target, scratch, inputs)
        else:
            after = outputs_of(read(ModelFolder.open(scratch)))

        difference = largest_difference(before, after)

        # Written so that NaN also fails.
        if not difference <= TOLERANCE:
            raise UserError(
                f"outputs differ by {difference:.1e} after conversion",
                path=bert.path,
                expected=f"at most {TOLERANCE:.0e}",
            )
    return difference


def parts_of(values: dict, target: str) -> list[str]:
    """Names of the written parts; `portable` formats have no masked LM."""
    parts = ["encoder"] + ["pooler"] * ("bert/pooler/dense/kernel" in values)
    return parts + [
        HEADS[name].title
        for name in heads_of(values)
        if target not in portable.FILES or name not in PRETRAINING
    ]
