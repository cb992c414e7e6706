"""extract_features from text to vectors."""

import gzip
import json

import numpy as np
import pytest

import extract_features
from bert.common.formats import tensor_files
from bert.data.text import tokenization
from bert.modeling.encoder import build_encoder
from tests.helpers import model_files, small, text

S, L, H = 13, small.L, small.H
LINES = [
    "the cat sees a dog .",
    "a bird ||| the fish likes the tree .",
    "",
    "stone",
    "the old dog finds the small red house near the warm river and the tree",
    "the cat ||| ",
    "the dog follows a bird and a fish ||| the cat sees the dog near a tree",
    "zzz cats the dog sees a bird and fish .",  # 13 tokens, not truncated
    "  a tree .\t",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkpoint with random weights, its config, vocabulary and text."""
    folder = tmp_path_factory.mktemp("features")
    model = build_encoder(model_files.write_sizes(folder, "config.json"))
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.1, 0.3, variable.shape))
    values = model_files.values_of(model)
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    (folder / "lines.txt").write_text("\n".join(LINES) + "\n")
    return folder, model


@pytest.fixture
def extract(made, run_script, tmp_path):
    """Runs the script; returns (path of the output, out, err)."""

    def run(*words, code=0, **named):
        folder, _ = made
        named = {
            "input_file": folder / "lines.txt",
            "output_file": tmp_path / "out",
            "output_format": "jsonl",
            "vocab_file": folder / "vocab.txt",
            "bert_config_file": folder / "config.json",
            "init_checkpoint": folder / "bert_model.ckpt",
            "max_seq_length": S,
            "batch_size": 3,
            "layers": "-1",
            **named,
        }
        named = {k: x for k, x in named.items() if x is not None}
        found, out, err = run_script(extract_features, *words, **named)
        assert found == code, err
        return named["output_file"], out, err

    return run


def rows_of(folder):
    """Tokens and segments of the lines, as the original makes them."""
    tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
    rows = []
    for line in LINES:
        a, bar, b = line.strip().partition(" ||| ")
        a, b = tokenizer.tokenize(a), tokenizer.tokenize(b)
        if line == "the cat ||| ":  # nothing behind the bar, once stripped
            a, b = tokenizer.tokenize("the cat |||"), []
        while len(a) + len(b) > S - (3 if b else 2):
            (a if len(a) > len(b) else b).pop()
        tokens = ["[CLS]", *a, "[SEP]"]
        segments = [0] * len(tokens)
        if b:
            tokens += [*b, "[SEP]"]
            segments += [1] * (len(b) + 1)
        rows.append((tokens, segments))
    return rows


@pytest.fixture(scope="module")
def expected(made):
    """Tokens and float32 [T, L, H] of each line, computed one at a time."""
    folder, model = made
    vocab = {token: i for i, token in enumerate(text.VOCABULARY)}
    found = []
    for tokens, segments in rows_of(folder):
        outputs = model(
            {
                "input_ids": np.array([[vocab[t] for t in tokens]], "i4"),
                "input_mask": np.ones([1, len(tokens)], "i4"),
                "segment_ids": np.array([segments], "i4"),
            }
        )["encoder_outputs"]
        found.append((tokens, np.stack([x[0] for x in outputs], 1)))
    return found


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_are_the_originals(extract, expected):
    path, out, err = extract(layers="-1,0")
    assert out == f"wrote the token vectors of 9 lines to {path}\n"
    assert "2 lines were truncated to 13 tokens" in err
    for number, (line, (tokens, values)) in enumerate(
        zip(read(path), expected, strict=True)
    ):
        assert list(line) == ["linex_index", "features"]
        assert line["linex_index"] == number
        assert [f["token"] for f in line["features"]] == tokens
        for feature, vectors in zip(line["features"], values, strict=True):
            assert list(feature) == ["token", "layers"]
            assert [x["index"] for x in feature["layers"]] == [-1, 0]
            for layer, index in zip(feature["layers"], (L - 1, 0)):
                assert list(layer) == ["index", "values"]
                np.testing.assert_allclose(
                    layer["values"], vectors[index], atol=1e-5
                )
                assert all(x == round(x, 6) for x in layer["values"])
                assert any(x != round(x, 5) for x in layer["values"])


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("e.jsonl", b'{"linex_index": 0'),
        ("e.json", b'{"linex_index": 0'),
        ("e.npz", b"PK"),
        ("e.npy", b"\x93NUMPY"),
        ("e.parquet", b"PAR1"),
        ("e.csv", None),
        ("e.pt", None),
        ("e.jsonl.gz", None),
        ("e", None),
    ],
)
def test_the_ending_is_the_format(extract, tmp_path, name, start):
    path, code = tmp_path / name, 2 * (start is None)
    named = {"output_file": path, "output_format": None, "pooling": "mean"}
    _, _, err = extract(code=code, **named)
    if code == 0:
        assert path.read_bytes().startswith(start)
        return
    assert err.splitlines()[-1] == (
        f"error: --output_file={path}; expected a name in .jsonl, .npz, .npy "
        "or .parquet; rename it, or pass --output_format"
    )
    extract(**named | {"output_format": "npy"})
    assert path.read_bytes().startswith(b"\x93NUMPY")


def test_texts_have_one_vector(extract, expected):
    named = {"pooling": "mean", "layers": "-2", "output_format": "npz"}
    path, out, _ = extract(**named)
    assert out == f"wrote the embeddings of 9 lines to {path}\n"
    with np.load(path) as found:
        values = found["values"]
    assert values.shape == (len(LINES), 1, H)
    for row, (_, vectors) in zip(values, expected, strict=True):
        mean = vectors[:, L - 2].mean(0)
        np.testing.assert_allclose(row[0], mean, atol=1e-5)


@pytest.mark.parametrize(
    ("layer_pooling", "mix"),
    [
        pytest.param("sum", np.add, marks=pytest.mark.long),
        pytest.param("mean", lambda *x: sum(x) / 2, marks=pytest.mark.long),
        ("concat", lambda *x: np.concatenate(x, -1)),
    ],
)
def test_layers_are_mixed(extract, expected, layer_pooling, mix):
    named = {"layers": "-1,-2", "output_format": "npz"}
    path, _, _ = extract("--normalize", layer_pooling=layer_pooling, **named)
    with np.load(path) as found:
        values, splits = found["values"], found["row_splits"]
    for number, (tokens, vectors) in enumerate(expected):
        mixed = mix(vectors[:, -1], vectors[:, -2])
        mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
        rows = values[splits[number] : splits[number + 1]]
        assert rows.shape == (len(tokens), mixed.shape[-1])
        np.testing.assert_allclose(rows, mixed, atol=1e-5)


def test_gz_and_several_files(extract, made, tmp_path):
    folder, _ = made
    with gzip.open(tmp_path / "more.txt.gz", "wt") as file:
        file.write("a tree .\n")
    path, _, _ = extract(
        input_file=f"{folder}/lines.txt,{tmp_path}/more.txt.gz",
        pooling="mean",
    )
    lines = read(path)
    assert [line["linex_index"] for line in lines] == list(range(10))
    assert lines[8]["layers"] == lines[9]["layers"]
