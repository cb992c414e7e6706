"""Variable names in checkpoints, as in the original release.

A checkpoint is a dict of name -> array, as `tf.train.load_checkpoint` reads it.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import networks
from bert.modeling.config import BertConfig
from bert.modeling.encoder import build_encoder
from bert.modeling.task_heads import HEADS, MASKED_LM

_POOLER = "bert/pooler/"
_OF_TRAINING = ("/adam_m", "/adam_v", "global_step")
ENCODER = ("bert/embeddings/", "bert/encoder/", _POOLER)
KNOWN = (*ENCODER, "cls/", "output_")
_WEIGHT = re.compile(
    r"(bert|cls)/.+/(\w+_embeddings|kernel|bias|gamma|beta"
    r"|output_weights|output_bias)|output_(weights|bias)"
)  # optimizers of other projects add names below these
WORDS = "bert/embeddings/word_embeddings"
_INTERMEDIATE = "bert/encoder/layer_0/intermediate/dense/kernel"
_SIZES = (  # name, axis and size of the config
    (WORDS, 0, "vocab_size"),
    (WORDS, 1, "hidden_size"),
    ("bert/embeddings/position_embeddings", 0, "max_position_embeddings"),
    ("bert/embeddings/token_type_embeddings", 0, "type_vocab_size"),
    (_INTERMEDIATE, 1, "intermediate_size"),
)


def encoder_variables(encoder: keras.Model) -> dict[str, keras.Variable]:
    """Variables of the encoder: original name -> variable.

    Args:
        encoder: keras.Model. Encoder from `build_encoder`.
    """
    embeddings = encoder.get_layer("embeddings")
    named = {
        f"bert/embeddings/{table}": getattr(embeddings, table)
        for table in (
            "word_embeddings",
            "token_type_embeddings",
            "position_embeddings",
        )
    }
    named |= _norm("bert/embeddings/LayerNorm", embeddings.layer_norm)

    blocks = [x for x in encoder.layers if x.name.startswith("layer_")]
    for index, block in enumerate(blocks):
        scope = f"bert/encoder/layer_{index}"
        for name in ("query", "key", "value"):
            projection = getattr(block.attention, name)
            named |= _dense(f"{scope}/attention/self/{name}", projection)
        output = f"{scope}/attention/output"
        named |= _dense(f"{output}/dense", block.attention_output)
        named |= _norm(f"{output}/LayerNorm", block.attention_layer_norm)
        named |= _dense(f"{scope}/intermediate/dense", block.intermediate)
        named |= _dense(f"{scope}/output/dense", block.output_dense)
        named |= _norm(f"{scope}/output/LayerNorm", block.output_layer_norm)

    return named | _dense("bert/pooler/dense", encoder.get_layer("pooler"))


def model_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Variables of the encoder and of all heads: original name -> variable.

    Args:
        model: keras.Model. From a builder in `networks`, or an encoder.
    """
    # A user's own head may have the same name, but has no `output_bias`.
    layers = {x.name: x for x in model.layers if hasattr(x, "output_bias")}
    named = encoder_variables(encoder_of(model))
    for name in HEADS:
        if name in layers:
            named |= _head_variables(layers[name])
    return named


def encoder_of(model: keras.Model) -> keras.Model:
    """The encoder of a model, which may be the model itself."""
    names = {layer.name for layer in model.layers}
    return model.get_layer("bert") if "bert" in names else model


def _head_variables(layer: keras.Layer) -> dict[str, keras.Variable]:
    """Variables of a head: original name -> variable."""
    scope, named = HEADS[layer.name].scope, {}
    if layer.name == MASKED_LM:
        named |= _dense(f"{scope}transform/dense", layer.transform)
        named |= _norm(f"{scope}transform/LayerNorm", layer.layer_norm)
    else:
        named[f"{scope}output_weights"] = layer.output_weights
    if layer.output_bias is not None:
        named[f"{scope}output_bias"] = layer.output_bias
    return named


def sizes_of(shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Sizes of the network in a checkpoint, named as in a config.

    Args:
        shapes: dict. Original name -> shape.

    Returns:
        The sizes that follow from the shapes. The number of attention heads
        does not.
    """
    layers = [depth(name) or 0 for name in shapes]
    sizes = {"num_hidden_layers": max(layers)} if any(layers) else {}

    for name, axis, size in _SIZES:
        if axis < len(shapes.get(name, ())):
            sizes[size] = shapes[name][axis]

    return sizes


def depth(name: str) -> int | None:
    """Layer of the encoder that a variable belongs to.

    Args:
        name: str. Original name of the variable.

    Returns:
        0 for the embeddings, N for the Nth layer from 1, None for the pooler
        and the heads.
    """
    if name.startswith(ENCODER[0]):
        return 0
    layer = re.match(r"bert/encoder/layer_([0-9]{1,9})/", name)
    return int(layer[1]) + 1 if layer else None


def freeze_layers(named: dict[str, keras.Variable], layers: int) -> None:
    """Freezes the embeddings and the first layers.

    Args:
        named: dict. Original name -> variable.
        layers: int. Number of layers. 0 freezes nothing, not even the
            embeddings.
    """
    for name, variable in named.items():
        number = depth(name)
        if layers and number is not None and number <= layers:
            variable.trainable = False


def of_network(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Selects the weights of a checkpoint: no optimizer slots and no step.

    Args:
        values: dict. Name -> array.
    """
    return {
        name: value
        for name, value in values.items()
        if name.startswith(KNOWN) and _WEIGHT.fullmatch(name)
    }


def rate_factors(
    named: dict[str, keras.Variable],
    variables: list[keras.Variable],
    decay: float,
    layers: int,
) -> tuple[float, ...]:
    """Factors of the learning rates.

    The factor is decay ** (L - l) for layer l of L, with the embeddings as
    layer 0, and 1 for pooler and heads (Howard and Ruder 2018,
    arXiv:1801.06146; Clark et al. 2020, arXiv:2003.10555).

    Args:
        named: dict. Original name -> variable.
        variables: list. Trained variables of `named`.
        decay: float. Above 0, up to 1.
        layers: int. L.

    Returns:
        Tuple of float: one factor for each of `variables`.
    """
    depths = {id(x): depth(name) for name, x in named.items()}
    numbers = [depths[id(variable)] for variable in variables]
    return tuple(1.0 if x is None else decay ** (layers - x) for x in numbers)


def read(prefix: str, with_optimizer: bool = False) -> dict[str, np.ndarray]:
    """Reads the network's variables from a checkpoint.

    Args:
        prefix: str. Prefix such as `bert_model.ckpt`.
        with_optimizer: bool. Whether to read optimizer slots and the step, too.
            Default: False.

    Raises:
        UserError: the checkpoint is damaged.
    """
    with reported(prefix):
        return tensor_files.read(prefix, () if with_optimizer else _OF_TRAINING)


@contextlib.contextmanager
def reported(prefix: str) -> Iterator[None]:
    """Context that turns read errors into a UserError for a checkpoint."""
    try:
        yield
    except OSError as error:
        raise storage.as_user_error(error) or error from None
    except (
        *(tf.errors.OpError, ValueError, IndexError, RuntimeError, TypeError),
    ) as error:
        raise UserError(
            f"cannot be read: {error}",
            path=prefix,
            fix="the checkpoint is damaged: copy it again",
        ) from None


def shapes_of(prefix: str) -> dict[str, list[int]]:
    """Reads the shapes of all variables of a checkpoint, without the values.

    Args:
        prefix: str. Prefix such as `bert_model.ckpt`.

    Raises:
        UserError: the checkpoint is damaged.
    """
    with reported(prefix):
        return tensor_files.open_reader(prefix).get_variable_to_shape_map()


def without_other_heads(
    weights: dict[str, np.ndarray], variables: dict[str, keras.Variable]
) -> dict[str, np.ndarray]:
    """Drops heads whose shapes differ, such as from another task or label set.

    Args:
        weights: dict. Original name -> array.
        variables: dict. Original name -> variable of the network.
    """
    return {
        name: value
        for name, value in weights.items()
        if name.startswith(ENCODER)
        or name not in variables
        or tuple(variables[name].shape) == value.shape
    }


def assign(
    variables: dict[str, keras.Variable],
    values: dict[str, np.ndarray],
    path: str,
    required: tuple[str, ...] = ENCODER,
) -> list[str]:
    """Assigns a checkpoint's values to variables: all of them, or an error.

    Args:
        variables: dict. Original name -> variable.
        values: dict. Original name -> array; other names are ignored.
        path: str. Path of the checkpoint, for messages.
        required: tuple of str. Prefixes of names that must be in the
            checkpoint. The whole pooler may be missing, as in models trained
            without next sentence prediction. Default: the encoder's.

    Returns:
        Names of the missing variables, which keep their initial values.

    Raises:
        UserError: a required variable is missing, or shapes differ.
    """
    # A different size is clearer than a list of the arrays it affects.
    wanted = sizes_of({name: x.shape for name, x in variables.items()})
    _compare_sizes(wanted, {name: x.shape for name, x in values.items()}, path)

    missing = [name for name in variables if name not in values]
    if not any(name.startswith(_POOLER) for name in values):
        required = tuple(x for x in required if not x.startswith(_POOLER))

    lacking = [name for name in missing if name.startswith(required)]
    if lacking:
        raise _lacks(lacking, values, path)

    # Arrays of kind O, S or U hold objects and strings.
    wrong = [
        f"{name} {list(x.shape)} of {x.dtype} (config: {list(v.shape)})"
        for name, v in variables.items()
        if (x := values.get(name)) is not None
        and (x.shape != tuple(v.shape) or x.dtype.kind in "OSU")
    ]
    if wrong:
        raise UserError(
            f"other shapes than the config's: {first_of(wrong)}",
            path=path,
            fix="pass the bert_config.json that belongs to it",
        )

    # Assigned only now, so that an error changes no variable.
    for name, variable in variables.items():
        if name in values:
            variable.assign(values[name])

    return missing


def load_network(
    config: BertConfig,
    values: dict[str, np.ndarray],
    path: str,
    head: str | None = None,
    required: tuple[str, ...] | None = None,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the network of a checkpoint, with its weights.

    Args:
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> array.
        path: str. Source of the values, for messages.
        head: str or None. Key of `task_heads.HEADS`. Default: None, only the
            encoder.
        required: tuple of str or None. Prefixes of names that must be in the
            values, see `assign`. Default: None, encoder and head.
        encoder: keras.Model or None. Encoder to use. Default: None, a new one.

    Returns:
        See `networks.build`; without a head see `build_encoder`.

    Raises:
        UserError: a variable is missing or has another shape.
    """
    if head is None:
        model, scopes = encoder or build_encoder(config), ()
    else:
        scope = HEADS[head].scope
        size = len(values.get(f"{scope}output_weights", ()))
        model = networks.build(config, head, size, encoder=encoder)
        scopes = (scope or "output_",)

    named = model_variables(model)
    required = (*ENCODER, *scopes) if required is None else required
    assign(named, values, path, required)
    return model


def check_sizes(
    config: BertConfig, shapes: Mapping[str, Sequence[int]], path: str
) -> None:
    """Compares a config with a checkpoint, before its network is built.

    Args:
        config: BertConfig. Sizes of the network.
        shapes: dict. Original name -> shape.
        path: str. Path of the checkpoint, for messages.

    Raises:
        UserError: a size differs, or a variable is missing.
    """
    needed = [name for name, _, _ in _SIZES]
    if lacking := [name for name in needed if name not in shapes]:
        raise _lacks(lacking, shapes, path)
    _compare_sizes(dataclasses.asdict(config), shapes, path)


def _compare_sizes(
    wanted: Mapping[str, int], shapes: Mapping[str, Sequence[int]], path: str
) -> None:
    """Reports the sizes that differ; surplus layers are ignored."""
    sizes = sizes_of(shapes)
    differing = [
        f"{name} is {wanted[name]} in the config, {size} in the checkpoint"
        for name, size in sizes.items()
        if size < wanted.get(name, size)
        or (size > wanted.get(name, size) and name != "num_hidden_layers")
    ]
    if differing:
        fix = "pass the bert_config.json that belongs to it"
        if len(differing) == 1 and "max_position" in differing[0]:
            fix += "; for longer texts, see --long_texts=windows"
        raise UserError("; ".join(differing), path=path, fix=fix)


def _lacks(lacking: list[str], held: Iterable[str], path: str) -> UserError:
    fix = (
        "the config has more layers, or this is another model or format (see "
        "convert_checkpoint.py)"
    )
    if not any(name.startswith(ENCODER) for name in lacking):
        fix = "train the model for this task, or pass another checkpoint"
    return UserError(
        f"lacks {first_of(lacking)}; it holds {first_of(sorted(held))}",
        path=path,
        fix=fix,
    )


def _dense(scope: str, layer: keras.layers.Dense) -> dict:
    return {f"{scope}/kernel": layer.kernel, f"{scope}/bias": layer.bias}


def _norm(scope: str, layer: keras.layers.LayerNormalization) -> dict:
    return {f"{scope}/gamma": layer.gamma, f"{scope}/beta": layer.beta}


def first_of(names: list[str]) -> str:
    """Formats names for a message: the first three, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
