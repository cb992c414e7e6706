"""Checks that take minutes; only in `make test-long`."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from common import tensor_files
from data.text import tokenization
from modeling import checkpoints
from modeling.config import BertConfig
from modeling.encoder import build_encoder
from tests.helpers import killed_runs, small
from tests.helpers.original_tokenization import known
from tests.helpers.original_tokenization import words as restated

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.long


@pytest.mark.parametrize("lower", [True, False])
def test_every_scalar_value_is_tokenized_as_restated(lower):
    tokenizer = tokenization.BasicTokenizer(lower)
    wrong = [
        code
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000
        and known(chr(code))
        and tokenizer.tokenize(f"a{chr(code)}b Σ{chr(code)}")
        != restated(f"a{chr(code)}b Σ{chr(code)}", lower)
    ]
    assert wrong == []


SHAPES = [
    (layers, width)
    for layers in (2, 4, 6, 8, 10, 12)
    for width in (128, 256, 512, 768)
]
PUBLISHED = {  # millions of parameters, as the papers round them
    (2, 128): 4.4,
    (4, 256): 11.2,
    (4, 512): 28.8,
    (8, 512): 41.4,
    (12, 768): 109.5,
    (24, 1024): 335.1,
}


@pytest.mark.parametrize(("layers", "width"), [*SHAPES, (24, 1024)])
def test_every_published_size_is_built_and_comes_back(tmp_path, layers, width):
    config = BertConfig(
        vocab_size=30522,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        type_vocab_size=2,
    )
    encoder = build_encoder(config)
    block = 4 * (width * width + width) + 4 * width
    block += 2 * 4 * width * width + 5 * width
    tables = (30522 + 512 + 2 + 2) * width
    pooler = width * width + width
    assert encoder.count_params() == tables + layers * block + pooler
    if (layers, width) in PUBLISHED:
        millions = round(encoder.count_params() / 1e6, 1)
        assert millions == PUBLISHED[layers, width]
    named = checkpoints.encoder_variables(encoder)
    before = {name: variable.numpy() for name, variable in named.items()}
    prefix = str(tmp_path / "bert_model.ckpt")
    tensor_files.write(prefix, before)
    for variable in named.values():
        variable.assign(variable * 0)
    checkpoints.assign(named, checkpoints.read(prefix), prefix)
    for name, variable in named.items():
        assert np.array_equal(variable.numpy(), before[name]), name


PROGRAM = """
import sys
from tests.helpers import killed_runs
sys.exit(killed_runs.pretrain(sys.argv[2:], int(sys.argv[1])))
"""


def test_eight_devices_train_as_one_does(tmp_path):
    """With two micro-batches per step, of one example per device."""
    killed_runs.write_files(tmp_path)
    config = small.config(num_hidden_layers=1)  # without dropout
    (tmp_path / "config.json").write_text(config.to_json())
    found = []
    for kind, replicas in (("one_device", 1), ("mirrored", 8)):
        argv = killed_runs.flags(
            tmp_path,
            tmp_path / kind,
            5,
            distribution=kind,
            train_batch_size=16,
            gradient_accumulation_steps=2,
            log_steps=1,
        )
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(replicas), *argv],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert ("8 x CPU" in done.stderr) == (replicas == 8), done.stderr
        found.append(tmp_path / kind)
    losses = [
        [float.fromhex(x[2]) for x in killed_runs.losses(run)] for run in found
    ]
    assert len(losses[0]) == 5
    np.testing.assert_allclose(*losses, atol=1e-5)
    ours, theirs = (
        tensor_files.read(str(run / "model.ckpt-5")) for run in found
    )
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=1e-5, err_msg=name)
