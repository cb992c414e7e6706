"""SavedModels of BERT and its tokenizer with TF-Hub's API.

Names, keys and attributes follow TF-Hub's "common SavedModel APIs for text".
To load the SavedModels, this project is not needed: the encoder needs
TensorFlow, the preprocessor also needs TensorFlow Text.

    build_encoder      -> encoder(inputs, training=), encoder.mlm(...)
    build_preprocessor -> preprocessor(strings), preprocessor.tokenize(...),
                          preprocessor.bert_pack_inputs(...)
    save               -> a folder, with signatures for TF Serving
"""

import itertools
from collections.abc import Callable

import keras
import tensorflow as tf

from bert.data import feature_names
from bert.data.text import text_ops
from bert.data.text.tokenizer import Tokenizer
from bert.export import saved_model
from bert.modeling import checkpoints, layers, tf_hub
from bert.modeling.config import BertConfig
from bert.modeling.formats import model_garden

_STRINGS = tf.TensorSpec([None], tf.string, name="sentences")
_MLM_INPUTS = (*feature_names.ENCODER_INPUTS, feature_names.MASKED_LM_POSITIONS)


class HubNetwork(tf.train.Checkpoint):
    """A network that can be called, fine-tuned and saved.

    Args:
        run: callable. (inputs, training) -> outputs.
        specs: dict. Name -> TensorSpec of each input, int32 [B, ...].
        variables: list of tf.Variable. The variables that `run` uses.

    Attributes:
        variables, trainable_variables: lists of tf.Variable.
        regularization_losses: an empty list.
        serve: the signature, a function of a dict for `keras.layers.TFSMLayer`.
    """

    def __init__(
        self,
        run: Callable,
        specs: dict[str, tf.TensorSpec],
        variables: list[tf.Variable],
    ):
        super().__init__()
        self._run = run
        self.variables = list(variables)
        self.trainable_variables = [v for v in variables if v.trainable]
        self.regularization_losses = []

        # SavedModel stores only traced functions.
        for training in (False, True):
            self.__call__.get_concrete_function(specs, training=training)

        self.serve = tf.function(
            _flat(run), input_signature=[specs], autograph=False
        )

    @tf.function(autograph=False)
    def __call__(self, inputs, training=False):
        """Computes a dict of float32 tensors from a dict of int32 tensors."""
        return self._run(inputs, training)


class Tokenize(tf.train.Checkpoint):
    """Tokenization, a part of the preprocessor.

    Args:
        tokenizer: GraphTokenizer. The tokenizer of the preprocessor.
        run: callable. string [B] -> token ids, int32 [B, (words), (tokens)],
            or a list of token ids and offsets.
    """

    def __init__(self, tokenizer: text_ops.GraphTokenizer, run: Callable):
        super().__init__()
        self._tokenizer = saved_model.Untracked(tokenizer)  # not saved twice
        self._run = run

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def __call__(self, sentences):
        """Tokenizes string [B]."""
        return self._run(sentences)

    @tf.function(input_signature=[], autograph=False)
    def get_special_tokens_dict(self):
        """Returns the vocabulary size and the special ids, int32 [] each."""
        tokenizer = self._tokenizer.value
        return {
            "vocab_size": tf.constant(tokenizer.vocab_size, tf.int32),
            "padding_id": tf.constant(tokenizer.pad_id, tf.int32),
            "start_of_sequence_id": tf.constant(tokenizer.cls_id, tf.int32),
            "end_of_segment_id": tf.constant(tokenizer.sep_id, tf.int32),
            "mask_id": tf.constant(tokenizer.mask_id, tf.int32),
        }


class Preprocessor(tf.train.Checkpoint):
    """Converts strings to the encoder's inputs.

    Args:
        tokenizer: Tokenizer. The tokenizer of the model.
        seq_length: int. S, the length of the sequences of a call, and the
            default of `bert_pack_inputs`.
        with_offsets: bool. Whether to add `tokenize_with_offsets`.

    Attributes:
        tokenize: `Tokenize`, string [B] -> ids, [B, (words), (tokens)].
        do_lower_case, strip_accents: casing of the tokenizer.
        bert_pack_inputs: (list of one or two int32 [B, (tokens)] or
            [B, (words), (tokens)], seq_length) -> the encoder's inputs.
        tokenize_with_offsets: `Tokenize`, string [B] -> [ids, first bytes,
            limits in bytes], each [B, (words), (tokens)].
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        seq_length: int,
        with_offsets: bool,
    ):
        super().__init__()
        graph, self._seq_length = tokenizer.graph, seq_length
        self.tokenize = Tokenize(graph, graph.tokenize)
        saved_model.record_casing(self, tokenizer)

        def pack(inputs, seq_length=seq_length):
            packed = saved_model.pack(graph, inputs, seq_length)
            return {tf_hub.NAMES[name]: value for name, value in packed.items()}

        self._pack = pack
        self.bert_pack_inputs = tf.function(pack, autograph=False)

        # SavedModel stores only traced functions. A segment has rank 1 or 2.
        for segments in (1, 2):
            for ranks in itertools.product((1, 2), repeat=segments):
                self.bert_pack_inputs.get_concrete_function(
                    [_ragged(rank) for rank in ranks],
                    tf.TensorSpec([], tf.int32, name="seq_length"),
                )

        if with_offsets:
            self.tokenize_with_offsets = Tokenize(
                graph,
                lambda strings: list(graph.tokenize_with_offsets(strings)),
            )

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def __call__(self, sentences):
        """Converts string [B] to the encoder's inputs, int32 [B, S]."""
        return self._pack([self.tokenize(sentences)], self._seq_length)


def build_encoder(
    model: keras.Model,
    config: BertConfig,
    tokenizer: Tokenizer,
    with_mlm: bool,
    seq_length: int | None = None,
) -> HubNetwork:
    """Builds the encoder, with the masked-LM head as a separate part.

    The variables are copies with the names and shapes of the published
    models. Each call with `training=True` draws a fresh dropout seed.

    Args:
        model: keras.Model. The result of `build_pretraining_model`. If its
            variables are not float32, the encoder has no trainable variables.
        config: BertConfig. Sizes of the network.
        tokenizer: Tokenizer. Its vocabulary is saved as an asset.
        with_mlm: bool. Whether to add the masked-LM head.
        seq_length: int or None. Length of all sequences. None: any length.
            Default: None.

    Returns:
        an encoder with the attributes `vocab_file`, `do_lower_case` and
        `strip_accents`. If `with_mlm`, its attribute `mlm` has the variables
        of the encoder and the head.
        Calls take a dict with `tf_hub.NAMES`, int32 [B, S], and return
        float32:
            pooled_output, default: [B, H].
            sequence_output: [B, S, H].
            encoder_outputs: L times [B, S, H].
            mlm_logits: [B, P, V]; only of `mlm`, which also takes
                `masked_lm_positions`, int32 [B, P].
    """
    bert, head = model.get_layer("bert"), model.get_layer("predictions")
    named = checkpoints.model_variables(model)
    theirs = model_garden.named_variables(
        config, {name: variable.numpy() for name, variable in named.items()}
    )
    encoder_names = checkpoints.encoder_variables(bert)
    head_names = [n for n in named if n.startswith("cls/predictions/")]
    all_names = (*encoder_names, *head_names)

    def run(inputs, training):
        """Calls the Keras model with the copies of its variables."""
        inputs = {tf_hub.OURS.get(name, name): x for name, x in inputs.items()}
        positions = inputs.pop(feature_names.MASKED_LM_POSITIONS, None)
        names = encoder_names if positions is None else all_names

        # The copies have other shapes, such as [H, A, D] instead of [H, H].
        pairs = [
            (named[name], tf.reshape(theirs[name], named[name].shape))
            for name in names
        ]

        with keras.StatelessScope(state_mapping=pairs):
            encoded = bert(inputs, training=training)
            outputs = {
                "pooled_output": encoded["pooled_output"],
                "default": encoded["pooled_output"],
                "sequence_output": encoded["sequence_output"],
                "encoder_outputs": encoded["encoder_outputs"],
            }
            if positions is not None:
                vectors = layers.gather_positions(
                    encoded["sequence_output"], positions
                )
                table = bert.get_layer("embeddings").word_embeddings
                outputs["mlm_logits"] = head(vectors, table.value)

        # The outputs are float32 in every precision.
        return tf.nest.map_structure(
            lambda tensor: tf.cast(tensor, tf.float32), outputs
        )

    def network(names, variables):
        specs = _specs(names, seq_length)
        return HubNetwork(run, specs, [theirs[name] for name in variables])

    encoder = network(feature_names.ENCODER_INPUTS, encoder_names)
    encoder.vocab_file = tf.saved_model.Asset(tokenizer.path)
    saved_model.record_casing(encoder, tokenizer)
    if with_mlm:
        encoder.mlm = network(_MLM_INPUTS, all_names)
    return encoder


def save(module: HubNetwork | Preprocessor, folder: str) -> None:
    """Writes a SavedModel.

    Its signatures are `serving_default` and, for an encoder with a masked-LM
    head, `mlm`. Their outputs are flat, without `encoder_outputs`.

    Args:
        module: HubNetwork or Preprocessor. An encoder or a preprocessor.
        folder: str. Path of a folder that does not exist.
    """
    if isinstance(module, Preprocessor):
        signatures = {"serving_default": module.__call__}
    else:
        signatures = {"serving_default": module.serve}
        if hasattr(module, "mlm"):
            signatures["mlm"] = module.mlm.serve
    tf.saved_model.save(module, folder, signatures=signatures)


def _specs(
    names: tuple[str, ...], seq_length: int | None
) -> dict[str, tf.TensorSpec]:
    """Returns the specs of the inputs of a network, by TF-Hub's names."""
    specs = {}
    for name in names:
        is_masked_lm = name == feature_names.MASKED_LM_POSITIONS
        shape = [None, None if is_masked_lm else seq_length]
        name = tf_hub.NAMES.get(name, name)
        specs[name] = tf.TensorSpec(shape, tf.int32, name=name)
    return specs


def _flat(run: Callable) -> Callable:
    """Wraps `run` for inference, with a flat dict of outputs."""

    def serve(inputs):
        outputs = run(inputs, False)
        del outputs["encoder_outputs"], outputs["default"]
        return outputs

    return serve


def _ragged(rank: int) -> tf.RaggedTensorSpec:
    return tf.RaggedTensorSpec([None] * (rank + 1), tf.int32, ragged_rank=rank)
