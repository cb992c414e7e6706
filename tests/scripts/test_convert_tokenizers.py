"""convert_checkpoint keeps a tokenizer, or rejects it by name."""

import json

import pytest

from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling import networks
from bert.modeling.formats import huggingface
from bert.modeling.formats.conversion_settings import TARGETS
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import model_files, small, text

pytestmark = pytest.mark.usefixtures("no_comparison")


@pytest.fixture(scope="module")
def values():
    config = small.config(vocab_size=len(text.VOCABULARY))
    return model_files.values_of(networks.build_pretraining_model(config))


@pytest.fixture
def source(tmp_path, values):
    """A folder of Hugging Face without tokenizer_config.json."""
    folder = tmp_path / "source"
    folder.mkdir()
    config = small.config(vocab_size=len(text.VOCABULARY))
    huggingface.write(str(folder), config, values)
    text.write_vocabulary(folder / "vocab.txt")
    return folder


@pytest.mark.parametrize(
    ("recorded", "flags", "expected"),
    [
        (None, {}, None),
        (True, {}, True),
        (False, {}, False),
        (True, {"strip_accents": False}, False),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_casing_and_length_survive_every_conversion(
    convert, tmp_path, source, target, recorded, flags, expected
):
    """Also with added words."""
    tokenizer_files.write_config(str(source), Casing(True, recorded), 7)
    (tmp_path / "words").write_text("sky\n")
    output = tmp_path / "out"
    flags = flags | {"extend_vocab": tmp_path / "words"}
    convert(source, target, output, **flags)
    config = json.loads((output / "tokenizer_config.json").read_text())
    assert config["do_lower_case"] is True
    assert config["strip_accents"] is expected
    model = ModelFolder.open(str(output))
    assert (model.casing, model.max_length) == (Casing(True, expected), 7)
    assert model.tokenizer.tokens[-1] == "sky"
