"""JSON that scripts read: config, labels, tokenizers, manifest."""

import json

from tests.bad_inputs.case import Case, pipe

CONFIG = ("doctor_config", "fill_mask", "extract_features", "export_hub")
HUGGINGFACE = ("convert_huggingface",)
FILES = {  # kind -> path, scripts
    "config": ("model/bert_config.json", CONFIG),
    "manifest": (
        "records/_good.manifest.json",
        ("run_pretraining", "doctor_records"),
    ),
    "labels": ("model/task.json", ("convert_google", "run_ner")),
    "checkpoint's JSON": (
        "model/bert_model.ckpt.json",
        ("fill_mask", "convert_google"),
    ),
    "tokenizer.json": ("hf/tokenizer.json", HUGGINGFACE),
    "tokenizer_config.json": ("hf/tokenizer_config.json", HUGGINGFACE),
    "special_tokens_map.json": ("hf/special_tokens_map.json", HUGGINGFACE),
    "config.json": ("hf/config.json", HUGGINGFACE),
}


def _config(**changed) -> bytes:
    values = {
        "vocab_size": 89,
        "hidden_size": 15,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "intermediate_size": 19,
        "max_position_embeddings": 37,
        "type_vocab_size": 2,
    }
    return json.dumps({**values, **changed}).encode()


CONFIGS = {
    **{
        f"{key} of {value}": (_config(**{key: value}), "parameters")
        for key, value in {
            "num_hidden_layers": 10**9,
            "vocab_size": 10**10,
            "intermediate_size": 10**12,
            "max_position_embeddings": 10**9,
            "type_vocab_size": 10**30,
            "hidden_size": 5 * 10**8,
        }.items()
    },
    "a text": (_config(vocab_size="89"), "got `str` - at `$.vocab_size`"),
    "an infinite dropout": (
        _config().replace(b"}", b', "hidden_dropout_prob": 1e999}'),
        "Number out of range",
    ),
    "an escape sequence": (
        _config().replace(b"}", rb', "\u001b[2J": 1}'),
        "unknown key",
    ),
}
LABELS = {
    "labels that are numbers": (
        b'{"kind": "any", "labels": ["a", 1]}',
        "Expected `str`, got `int` - at `$.labels[1]`",
    ),
}
DESCRIPTIONS = {
    "nested": (b'{"settings": ' + b"[" * 100_000, "nested too deep"),
    "settings that are a list": (b'{"settings": []}', "at `$.settings`"),
    "a casing that is text": (
        b'{"settings": {"do_lower_case": "no"}}',
        "Expected `bool | null`, got `str` - at `$.do_lower_case`",
    ),
}


def _pipeline(tokens: object, **changed) -> bytes:
    values = {
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "vocab": tokens},
    }
    return json.dumps({**values, **changed}).encode()


PIPELINES = {
    "a token with a newline": (_pipeline({"a\nb": 0}), "the token 'a\\nb'"),
    "a token with a return": (_pipeline({"a\r": 0}), "the token 'a\\r'"),
    "an empty token": (_pipeline({"": 0}), "the token ''"),
    "a token with a blank": (_pipeline({" a": 0}), "the token ' a'"),
    "ids that are text": (_pipeline({"a": "0"}), "Expected `int`, got `str`"),
    "an id twice": (_pipeline({"a": 0, "b": 0}), "ids with gaps"),
    "an added token": (
        _pipeline({"a": 0}, added_tokens=[{"content": "b"}]),
        "the added token 'b'",
    ),
}
TOKENIZERS = {
    "a casing that is text": (b'{"do_lower_case": "no"}', "$.do_lower_case"),
    "another mask": (b'{"mask_token": "<mask>"}', "mask_token is"),
}
THEIR_CONFIGS = {
    "a width that is text": (b'{"hidden_size": "15"}', "$.hidden_size"),
    "another model": (b'{"model_type": {}}', "model_type is {}"),
    "many layers": (b'{"num_hidden_layers": 1000000000}', "parameters"),
}
MANIFESTS = {
    "a file of another folder": (
        b'{"format": 2, "shards": {}, "vocab_file": "../model/vocab.txt"}',
        "Expected `str` matching regex",
    ),
}


def cases() -> list[Case]:
    """All cases of this file."""
    found = []
    own = {
        "config": CONFIGS,
        "labels": LABELS,
        "checkpoint's JSON": DESCRIPTIONS,
        "tokenizer.json": PIPELINES,
        "tokenizer_config.json": TOKENIZERS,
        "config.json": THEIR_CONFIGS,
        "manifest": MANIFESTS,
    }
    for kind, (path, runs) in FILES.items():
        # Without both words it would be the manifest of another program.
        contents = {
            "cut": (b'{"format": 2, "shards": {', ""),
            **own.get(kind, {}),
        }
        if kind not in ("config", "manifest"):  # found earlier; not ours
            contents["a pipe"] = (pipe, "is a pipe or device")
        found += [
            Case(kind, name, path, content, message, runs)
            for name, (content, message) in contents.items()
        ]
    return found
