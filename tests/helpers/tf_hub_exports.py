"""SavedModels that `export_hub.py` made, each once in a session."""

import dataclasses
import pathlib

import keras
import numpy as np
import pytest

import export_hub
from bert.common import main as main_lib
from bert.common.formats import tensor_files
from bert.modeling import networks
from bert.modeling.config import BertConfig
from tests.helpers import model_files, once, small, text

V = len(text.VOCABULARY)
HEAD = 5  # variables of the masked-LM head
ENCODER = ("input_ids", "input_mask", "segment_ids")
_made = []


@dataclasses.dataclass
class Exports:
    """A checkpoint, its exports, and the network it belongs to."""

    folder: pathlib.Path
    config: BertConfig
    model: keras.Model
    factory: pytest.TempPathFactory

    @property
    def encoder(self) -> str:
        """Folder of the encoder with its masked-LM head."""
        return self._exported("encoder", "--export_type=model_with_mlm")

    @property
    def preprocessor(self) -> str:
        """Folder of the preprocessor; rows of 13."""
        return self._exported(
            "preprocessor",
            "--export_type=preprocessing",
            "--default_seq_length=13",
            "--tokenize_with_offsets",
        )

    def _exported(self, name: str, *words: str) -> str:
        def write(folder):
            checkpoint = self.folder / "bert_model.ckpt"
            given = [f"--model_checkpoint_path={checkpoint}", *words]
            given.append(f"--export_path={folder / name}")
            assert main_lib.run(export_hub.main, ["", *given]) == 0

        folder = once.written(self.factory, f"tf_hub_{name}", write)
        return str(folder / name)

    def expected(self, rows: dict) -> dict[str, np.ndarray]:
        """What the network gives for rows under the original's names."""
        found = self.model.get_layer("bert")({n: rows[n] for n in ENCODER})
        outputs = {n: found[n] for n in ("pooled_output", "sequence_output")}
        outputs["mlm_logits"] = self.model(rows)["masked_lm_logits"]
        arrays = {n: np.array(x) for n, x in outputs.items()}
        layers = [np.array(x) for x in found["encoder_outputs"]]
        return {**arrays, "encoder_outputs": layers}


def rows() -> dict[str, np.ndarray]:
    """Inputs of encoder and masked-LM head, int32."""
    batch = small.batch()
    names = (*ENCODER, "masked_lm_positions")
    found = {name: np.int32(batch[name]) for name in names}
    found["input_ids"] %= V
    return found


def theirs(rows: dict) -> dict[str, np.ndarray]:
    """Rows of the encoder under TF-Hub's names."""
    return {
        "input_word_ids": rows["input_ids"],
        "input_mask": rows["input_mask"],
        "input_type_ids": rows["segment_ids"],
    }


def made(factory: pytest.TempPathFactory) -> Exports:
    """Writes a checkpoint with random weights; exports are written on demand.

    Args:
        factory: `tmp_path_factory`.
    """
    if not _made:
        config = small.config(
            vocab_size=V,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
        )
        model = networks.build_pretraining_model(config)
        rng = np.random.default_rng(3)
        for variable in model.variables:
            # Around one, as after training: with other scales of LayerNorm,
            # a consumer's fine-tuning fails now and then.
            mean = 1.0 if variable.path.endswith("gamma") else 0.1
            variable.assign(rng.normal(mean, 0.3, variable.shape))

        def write(folder):
            text.write_vocabulary(folder / "vocab.txt")
            (folder / "bert_config.json").write_text(config.to_json())
            values = model_files.values_of(model)
            tensor_files.write(str(folder / "bert_model.ckpt"), values)

        folder = once.written(factory, "tf_hub_checkpoint", write)
        _made.append(Exports(folder, config, model, factory))
    return _made[0]
