"""Configs are read strictly, and the published ones are read."""

import pathlib

import pytest

from bert.common.errors import UserError
from bert.modeling.config import BertConfig

CONFIGS = pathlib.Path(__file__).parents[2] / "bert" / "configs"
SIZES = {"vocab_size": 97, "hidden_size": 6, "num_attention_heads": 3}


def test_defaults_are_the_originals():
    assert BertConfig.from_dict({"vocab_size": 97}) == BertConfig(
        vocab_size=97,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        hidden_act="gelu",
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        max_position_embeddings=512,
        type_vocab_size=16,
        initializer_range=0.02,
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hiden_size": 6}, "'hiden_size'; did you mean 'hidden_size'?"),
        ({"num_hidden_layer": 2}, "did you mean 'num_hidden_layers'?"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"vocab_size": "97"}, "got `str` - at `$.vocab_size`"),
        ({"hidden_size": 6.0}, "got `float` - at `$.hidden_size`"),
        ({"num_hidden_layers": True}, "got `bool` - at `$.num_hid"),
        ({"hidden_act": 3}, "got `int` - at `$.hidden_act`"),
        ({"hidden_size": -3}, "Expected `int` >= 1 - at `$.hid"),
        ({"intermediate_size": 10**9}, "Expected `int` <= 16777216 - at `$."),
        ({"num_hidden_layers": 1001}, "Expected `int` <= 1000 - at `$.num_"),
        ({"hidden_size": 7}, "expected a multiple of num_attention_heads, 3"),
        ({"hidden_dropout_prob": 7}, "< 1.0 - at `$.hidden_dropout_prob`"),
        ({"attention_probs_dropout_prob": -0.1}, "Expected `float` >= 0.0"),
        ({"initializer_range": 0}, "Expected `float` > 0.0"),
        ({"hidden_act": "swish"}, "expected one of gelu, gelu_new"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05; expected 1e-12"),
        ({"position_embedding_type": "relative_key"}, "expected 'absolute'"),
    ],
)
def test_a_wrong_value_is_named(changed, message):
    with pytest.raises(UserError) as caught:
        BertConfig.from_dict({**SIZES, **changed})
    assert message in str(caught.value)


def test_harmless_keys_of_published_configs_are_read():
    published = {
        **SIZES,
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_type": "first_token_transform",
        "model_type": "bert",
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",
        "architectures": ["BertForMaskedLM"],
        "transformers_version": "4.6.0",
    }
    assert BertConfig.from_dict(published) == BertConfig(**SIZES)


@pytest.mark.parametrize(
    ("name", "layers", "width", "heads"),
    [
        ("tiny", 2, 128, 2),
        ("mini", 4, 256, 4),
        ("small", 4, 512, 8),
        ("medium", 8, 512, 8),
        ("base", 12, 768, 12),
        ("large", 24, 1024, 16),
    ],
)
def test_configs_are_the_published_sizes(name, layers, width, heads):
    config = BertConfig.from_json_file(str(CONFIGS / f"bert_{name}.json"))
    assert config == BertConfig(
        vocab_size=30522,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        type_vocab_size=2,
    )
