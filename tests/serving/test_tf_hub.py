"""The reusable API of TF-Hub's BERTs: every key, dtype, shape, attribute.

Written from what TF-Hub documents for text encoders and preprocessors.
"""

import itertools
import pathlib
import random

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub

from bert.data import sequences
from tests.helpers import text, tf_hub_exports
from tests.helpers.small import INTERMEDIATE, POSITIONS, A, B, H, L, P, S
from tests.helpers.tf_hub_exports import HEAD, V

D = H // A
WIDTH = 13  # default_seq_length of the preprocessor
CLS, SEP = 2, 3
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    return tf_hub_exports.made(tmp_path_factory)


@pytest.fixture(scope="module")
def encoder(exports):
    return tensorflow_hub.load(exports.encoder)


@pytest.fixture(scope="module")
def preprocessor(exports):
    return tensorflow_hub.load(exports.preprocessor)


def shapes(outputs):
    """Name -> (dtype, shape); a list for each layer."""
    return tf.nest.map_structure(
        lambda x: (x.dtype.name, tuple(x.shape)), dict(outputs)
    )


ENCODED = {
    "pooled_output": ("float32", (B, H)),
    "default": ("float32", (B, H)),
    "sequence_output": ("float32", (B, S, H)),
    "encoder_outputs": [("float32", (B, S, H))] * L,
}


def test_calls_and_flat_signatures_give_what_the_checkpoint_gives(
    exports, encoder
):
    rows, signatures = tf_hub_exports.rows(), encoder.signatures
    expected, logits = exports.expected(rows), ("float32", (B, P, V))
    inputs = {n: tf.constant(x) for n, x in tf_hub_exports.theirs(rows).items()}
    positions = tf.constant(rows["masked_lm_positions"])
    masked = inputs | {"masked_lm_positions": positions}
    flat = {n: ENCODED[n] for n in ("pooled_output", "sequence_output")}
    for found, described in (
        (encoder(inputs), ENCODED),
        (encoder.mlm(masked), ENCODED | {"mlm_logits": logits}),
        (signatures["serving_default"](**inputs), flat),
        (signatures["mlm"](**masked), flat | {"mlm_logits": logits}),
    ):
        assert shapes(found) == described
        for name, value in found.items():
            wanted = expected["pooled_output" if name == "default" else name]
            np.testing.assert_allclose(
                *map(tf.stack, (value, wanted)), atol=1e-5
            )
    for name, given in (("serving_default", inputs), ("mlm", masked)):
        specs = signatures[name].structured_input_signature[1]
        assert specs.keys() == given.keys()
        assert {(x.dtype, x.shape.rank) for x in specs.values()} == {
            (tf.int32, 2)
        }


def test_training_draws_other_dropout_at_each_call(encoder):
    rows = tf_hub_exports.theirs(tf_hub_exports.rows())

    def pooled(**named):
        return encoder(rows, **named)["pooled_output"].numpy()

    quiet, drawn = pooled(), pooled(training=True)
    np.testing.assert_array_equal(quiet, pooled(training=False))
    assert abs(drawn - pooled(training=True)).max() > 1e-3
    assert abs(drawn - quiet).max() > 1e-3


def published():
    """Names and shapes of the encoder's variables."""
    names = {
        "word_embeddings/embeddings:0": (V, H),
        "position_embedding/embeddings:0": (POSITIONS, H),
        "type_embeddings/embeddings:0": (2, H),
        "embeddings/layer_norm/gamma:0": (H,),
        "embeddings/layer_norm/beta:0": (H,),
        "pooler_transform/kernel:0": (H, H),
        "pooler_transform/bias:0": (H,),
    }
    for index in range(L):
        scope = f"transformer/layer_{index}"
        for part in ("query", "key", "value"):
            names[f"{scope}/self_attention/{part}/kernel:0"] = (H, A, D)
            names[f"{scope}/self_attention/{part}/bias:0"] = (A, D)
        output = f"{scope}/self_attention/attention_output"
        names[f"{output}/kernel:0"], names[f"{output}/bias:0"] = (A, D, H), (H,)
        for norm in ("self_attention_layer_norm", "output_layer_norm"):
            names[f"{scope}/{norm}/gamma:0"] = (H,)
            names[f"{scope}/{norm}/beta:0"] = (H,)
        names[f"{scope}/intermediate/kernel:0"] = (H, INTERMEDIATE)
        names[f"{scope}/intermediate/bias:0"] = (INTERMEDIATE,)
        names[f"{scope}/output/kernel:0"] = (INTERMEDIATE, H)
        names[f"{scope}/output/bias:0"] = (H,)
    return names


def test_the_attributes_of_an_encoder(exports, encoder):
    for variables in (encoder.variables, encoder.trainable_variables):
        assert {v.name: tuple(v.shape) for v in variables} == published()
        assert {v.dtype.name for v in variables} == {"float32"}
    assert list(encoder.regularization_losses) == []
    assert encoder.do_lower_case.dtype == tf.bool
    assert not encoder.do_lower_case.trainable
    assert encoder.do_lower_case.numpy()
    assert encoder.strip_accents.numpy()
    asset = pathlib.Path(encoder.vocab_file.asset_path.numpy().decode())
    assert asset.name == "vocab.txt"
    assert asset.read_text() == (exports.folder / "vocab.txt").read_text()


def test_the_heads_weights_do_not_count_as_the_encoders(encoder):
    core = {id(v) for v in encoder.trainable_variables}
    mlm = {id(v) for v in encoder.mlm.trainable_variables}
    assert core < mlm
    assert len(mlm) == len(core) + HEAD
    extra = [v for v in encoder.mlm.variables if id(v) not in core]
    assert {v.name: tuple(v.shape) for v in extra} == {
        "cls/predictions/transform/dense/kernel:0": (H, H),
        "cls/predictions/transform/dense/bias:0": (H,),
        "cls/predictions/transform/LayerNorm/gamma:0": (H,),
        "cls/predictions/transform/LayerNorm/beta:0": (H,),
        "cls/predictions/output_bias/bias:0": (V,),
    }


SENTENCES = ["the cat sees dogs .", "", "a Bird zzz " * 5]


def test_a_preprocessor_packs_the_tokens_of_texts(preprocessor):
    rows = preprocessor(SENTENCES)
    tokens = preprocessor.tokenize(tf.constant(SENTENCES))
    assert shapes(rows) == dict.fromkeys(INPUTS, ("int32", (3, WIDTH)))
    for name, packed in preprocessor.bert_pack_inputs([tokens]).items():
        np.testing.assert_array_equal(rows[name], packed)
    assert preprocessor(tf.zeros([0], tf.string))["input_mask"].shape[0] == 0


@pytest.mark.parametrize("part", ["tokenize", "tokenize_with_offsets"])
def test_the_special_tokens(preprocessor, part):
    special = getattr(preprocessor, part).get_special_tokens_dict()
    assert {n: (x.dtype.name, x.numpy()) for n, x in special.items()} == {
        "vocab_size": ("int32", V),
        "padding_id": ("int32", 0),
        "start_of_sequence_id": ("int32", CLS),
        "end_of_segment_id": ("int32", SEP),
        "mask_id": ("int32", 4),
    }


def test_tokenize_with_offsets(preprocessor):
    sentences = tf.constant(["a  Cats .", "", "zzz"])
    found = preprocessor.tokenize_with_offsets(sentences)
    assert isinstance(found, list | tuple)
    tokens, starts, limits = found
    a, cat, s, point = map(text.VOCABULARY.index, ("a", "cat", "##s", "."))
    for ids in (preprocessor.tokenize(sentences), tokens):
        assert (ids.dtype, ids.ragged_rank) == (tf.int32, 2)
        assert ids.to_list() == [[[a], [cat, s], [point]], [], [[1]]]
    assert starts.to_list() == [[[0], [3, 6], [8]], [], [[0]]]
    assert limits.to_list() == [[[1], [6, 7], [9]], [], [[3]]]
    for x in (starts, limits):
        assert (x.dtype, x.ragged_rank) == (tf.int64, 2)


def segment(rows, rank):
    """Sequences of tokens, or of words of tokens."""
    if rank == 1:
        return tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    words = [[row[:2], row[2:]] for row in rows]
    return tf.ragged.constant(words, tf.int32, ragged_rank=2)


@pytest.mark.parametrize(
    "ranks", [x for n in (1, 2) for x in itertools.product((1, 2), repeat=n)]
)
@pytest.mark.parametrize("length", [None, 7, 23])
def test_pack_inputs(preprocessor, ranks, length):
    rng = random.Random(len(ranks))
    parts = [
        [[rng.randrange(5, V) for _ in range(n)] for n in lengths]
        for lengths in ((1, 9, 4, 0, 12), (3, 2, 9, 0, 12))[: len(ranks)]
    ]
    given = [segment(rows, rank) for rows, rank in zip(parts, ranks)]
    named = {} if length is None else {"seq_length": length}
    found = preprocessor.bert_pack_inputs(given, **named)
    width = length or WIDTH
    assert shapes(found) == dict.fromkeys(INPUTS, ("int32", (5, width)))
    for index, segments in enumerate(zip(*parts)):
        a, b = (*segments, [])[:2]
        if len(ranks) == 1:
            ids, types = [CLS, *a[: width - 2], SEP], [0] * width
        else:
            a, b = sequences.truncate_pair(list(a), list(b), width - 3)
            ids = [CLS, *a, SEP, *b, SEP]
            types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        row = {n: x[index].numpy().tolist() for n, x in found.items()}
        rest = [0] * (width - len(ids))
        assert row["input_word_ids"] == ids + rest
        assert row["input_mask"] == [1] * len(ids) + rest
        assert row["input_type_ids"] == (types + rest)[:width]


def test_pack_inputs_takes_a_length_that_a_graph_computes(preprocessor):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def pack(length):
        tokens = tf.ragged.constant([[5, 6, 7, 8]], tf.int32)
        return preprocessor.bert_pack_inputs([tokens], seq_length=length)

    assert pack(5)["input_word_ids"].numpy().tolist() == [[2, 5, 6, 7, 3]]


def test_a_preprocessor_works_inside_tf_data(preprocessor):
    dataset = tf.data.Dataset.from_tensor_slices(SENTENCES).batch(2)
    dataset = dataset.map(preprocessor, num_parallel_calls=2)
    rows = [
        row.tolist() for x in dataset for row in x["input_word_ids"].numpy()
    ]
    assert rows == preprocessor(SENTENCES)["input_word_ids"].numpy().tolist()
    fixed = tf.data.Dataset.from_tensors(["a", "b"]).map(preprocessor)
    assert {name: spec.shape for name, spec in fixed.element_spec.items()} == (
        dict.fromkeys(INPUTS, (2, WIDTH))
    )
