"""JSON that scripts read: config, labels, tokenizers, manifest."""

import gzip
import json
import pathlib

from tests.bad_inputs.case import Case, pipe

DEEP = 100_000
CONFIG = ("doctor_config", "fill_mask", "extract_features", "export_hub")
HUGGINGFACE = ("convert_huggingface",)
FILES = {  # kind -> path, scripts, a key and value for duplicates
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


def _own_link(path: pathlib.Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


# `MARKED` keeps the file a manifest, which is ignored if it is another app's.
MARKED = b'"format": 2, "shards": {}'
ANY = {
    "nested": (b'{%s, "a": ' % MARKED + b"[" * DEEP, "nested too deep"),
    "nested objects": (
        b'{%s, "a": ' % MARKED + b'{"a":' * DEEP,
        "nested too deep",
    ),
    "cut": (b"{%s" % MARKED, "not JSON: Expecting"),
    "two values": (b"{%s} {}" % MARKED, "not JSON: Extra data"),
    "NaN": (b'{%s, "a": NaN}' % MARKED, "NaN is no number"),
    "infinite": (b'{%s, "a": -Infinity}' % MARKED, "-Infinity is no number"),
    "a key twice": (
        b'{%s, "a": 1, "a": 2}' % MARKED,
        "duplicate key 'a'",
    ),
    "a key twice of many": (
        b'{%s, "a": 1, ' % MARKED
        + b", ".join(b'"%d": 0' % i for i in range(150_000))
        + b', "a": 2}',
        "duplicate key 'a'",
    ),
    "half a pair": (
        rb'{%s, "a": "\ud83d"}' % MARKED,
        r"half of a surrogate pair, \ud83d",
    ),
    "half a pair in a key": (
        rb'{%s, "\uDE00": 1}' % MARKED,
        r"half of a surrogate pair, \ude00",
    ),
    "invalid UTF-8": (b'{%s, "a": "\xff"}' % MARKED, "not JSON: 'utf-8'"),
    "a long number": (b'{%s, "a": %s}' % (MARKED, b"1" * 5000), "digits"),
}
# A manifest of these would be a file of another program.
NOT_OBJECTS = {
    "a list": (b"[]", "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "a string": (b'"text"', "not a JSON object"),
    "empty": (b"", "not JSON"),
    "damaged gzip": (gzip.compress(b"{}")[:-9], ""),
    "a pipe": (pipe, "is a pipe or device"),
    "a link to itself": (_own_link, ""),
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
        f"{key} {value}": (_config(**{key: value}), f"{message}")
        for key, values in {
            "num_hidden_layers": ((10**9, "parameters"), (0, "1 or more")),
            "vocab_size": ((10**10, "parameters"), (-1, "1 or more")),
            "intermediate_size": ((10**12, "parameters"), ("19", "a int")),
            "max_position_embeddings": ((10**9, "parameters"), (1.5, "a int")),
            "type_vocab_size": ((10**30, "parameters"), (None, "a int")),
            "hidden_size": ((5 * 10**8, "parameters"), ([15], "a int")),
            "num_attention_heads": ((10**9, "a multiple"), (True, "a int")),
            "initializer_range": ((0, "more than 0"), (10**300, "more than")),
            "hidden_dropout_prob": ((1, "0 to below 1"), ("x", "a float")),
            "hidden_act": (("swish", "one of"), (["gelu"], "a str")),
            "layer_norm_eps": ((1e-5, "1e-12"),),
            "evil": ((1, "unknown key 'evil'"),),
        }.items()
        for value, message in values
    },
    "an infinite dropout": (
        _config().replace(b"}", b', "hidden_dropout_prob": 1e999}'),
        "0 to below 1",
    ),
    "an infinite range": (
        _config().replace(b"}", b', "initializer_range": 1e999}'),
        "at most 100",
    ),
    "an escape sequence": (
        _config().replace(b"}", rb', "\u001b[2J": 1}'),
        "unknown key",
    ),
}
LABELS = {
    "no labels": (b'{"kind": "classes"}', "labels is missing"),
    "no kind": (b'{"labels": []}', "kind is missing"),
    "labels that are text": (
        b'{"kind": "classes", "labels": "ab"}',
        "labels is a string, expected a list",
    ),
    "labels that are numbers": (
        b'{"kind": "any", "labels": ["a", 1]}',
        "labels[1] is a whole number, expected a string",
    ),
    "a kind that is a list": (
        b'{"kind": [], "labels": []}',
        "kind is a list, expected a string",
    ),
}
DESCRIPTIONS = {
    "settings that are a list": (b'{"settings": []}', "settings is a list"),
    "a casing that is text": (
        b'{"settings": {"do_lower_case": "no"}}',
        "settings.do_lower_case is a string, expected true or false",
    ),
    "accents that are a number": (
        b'{"settings": {"strip_accents": 1}}',
        "settings.strip_accents is a whole number, expected true or false",
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
    "tokens in a list": (_pipeline(["a"]), "vocab is a list"),
    "ids that are text": (_pipeline({"a": "0"}), "vocab['a'] is a string"),
    "ids that are true": (_pipeline({"a": True}), "vocab['a'] is true"),
    "a negative id": (_pipeline({"a": -1}), "expected at least 0"),
    "ids with gaps": (_pipeline({"a": 0, "b": 2}), "ids with gaps"),
    "an id twice": (_pipeline({"a": 0, "b": 0}), "ids with gaps"),
    "added tokens of text": (
        _pipeline({}, added_tokens=["a"]),
        "added_tokens[0] is a string",
    ),
    "an added token": (
        _pipeline({"a": 0}, added_tokens=[{"content": ["a"]}]),
        "the added token ['a']",
    ),
    "a model that is a list": (_pipeline({}, model=[]), "the model is []"),
    "a normalizer that is null": (
        _pipeline({}, normalizer=None),
        "the normalizer is None",
    ),
}
TOKENIZERS = {
    "a casing that is text": (b'{"do_lower_case": "no"}', "do_lower_case is"),
    "special tokens that are a number": (
        b'{"additional_special_tokens": 3}',
        "additional_special_tokens is a whole number",
    ),
    "added tokens in a list": (
        b'{"added_tokens_decoder": [1]}',
        "added_tokens_decoder is a list",
    ),
    "a class that is a list": (b'{"tokenizer_class": []}', "tokenizer_class"),
    "another mask": (b'{"mask_token": ["[MASK]"]}', "mask_token is"),
}
THEIR_CONFIGS = {
    "an activation that is a list": (
        b'{"hidden_act": ["gelu"]}',
        "hidden_act is a list",
    ),
    "a width that is text": (b'{"hidden_size": "15"}', "hidden_size is '15'"),
    "a class that is a number": (
        b'{"architectures": [1]}',
        "architectures[0] is a whole number",
    ),
    "a problem that is a list": (
        b'{"problem_type": []}',
        "problem_type is a list",
    ),
    "another model": (b'{"model_type": {}}', "model_type is {}"),
    "many layers": (b'{"num_hidden_layers": 1000000000}', "parameters"),
}


def _manifest(shard: object = None, **changed) -> bytes:
    entry = {"records": 1, "bytes": 1, "sha256": "0" * 64}
    values = {
        "format": 2,
        "vocab_file": "vocab.txt",
        "vocab_sha256": "0" * 64,
        "vocab_size": 5,
        "max_seq_length": 31,
        "max_predictions_per_seq": 5,
        "do_lower_case": True,
        "strip_accents": True,
        "shards": {"good.tfrecord": entry if shard is None else shard},
    }
    kept = {k: v for k, v in {**values, **changed}.items() if v is not None}
    return json.dumps(kept).encode()


MANIFESTS = {
    "a file of another folder": (
        _manifest(vocab_file="../model/vocab.txt"),
        "a name without a folder",
    ),
    "a file of the system": (
        _manifest(vocab_file="/etc/passwd"),
        "a name without a folder",
    ),
    "the folder above": (_manifest(vocab_file=".."), "a name without"),
    "no name": (_manifest(vocab_file=""), "a name without a folder"),
    "a name with NUL": (_manifest(vocab_file="a\0b"), "a name without"),
    "no vocabulary": (_manifest(vocab_file=None), "vocab_file is missing"),
    "another hash": (_manifest(vocab_sha256="x"), "64 hexadecimal digits"),
    "a negative length": (_manifest(max_seq_length=-1), "at least 1"),
    "a length of text": (_manifest(max_seq_length="31"), "a string"),
    "a casing of 1": (_manifest(do_lower_case=1), "a whole number"),
    "a share of text": (_manifest(shares={"a": "x"}), "shares['a']"),
    "a shard of text": (_manifest("x"), "expected an object"),
    "a shard without records": (
        _manifest({"bytes": 1, "sha256": "0" * 64}),
        "records is missing",
    ),
    "a shard of another folder": (
        _manifest(shards={"../a": {}}),
        "a name without a folder",
    ),
    "another format": (_manifest(format=7), "format is 7, expected 2"),
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
        contents = {**ANY, **own.get(kind, {})}
        if kind != "manifest":
            contents |= NOT_OBJECTS
        if kind == "config":  # a flag names it: its absence is found earlier
            del contents["a pipe"], contents["a link to itself"]
        found += [
            Case(kind, name, path, content, message, runs)
            for name, (content, message) in contents.items()
        ]
    return found
