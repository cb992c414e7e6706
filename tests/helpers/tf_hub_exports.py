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
    """A checkpoint, what was made of it, and the network it belongs to."""

    folder: pathlib.Path
    config: BertConfig
    model: keras.Model
    factory: pytest.TempPathFactory

    @property
    def encoder(self) -> str:
        """Folder of the encoder with its masked-LM head."""
        return str(self.folder / "encoder")

    @property
    def preprocessor(self) -> str:
        """Folder of the preprocessor; rows of 13."""
        folder = once.written(
            self.factory, "tf_hub_preprocessor", self._write_preprocessor
        )
        return str(folder / "preprocessor")

    def write_encoder(self) -> None:
        """Writes the checkpoint, and the encoder with its masked-LM head."""
        text.write_vocabulary(self.folder / "vocab.txt")
        config = self.config.to_json()
        (self.folder / "bert_config.json").write_text(config)
        values = model_files.values_of(self.model)
        tensor_files.write(str(self.folder / "bert_model.ckpt"), values)
        self._export("model_with_mlm", self.encoder)

    def _write_preprocessor(self, folder: pathlib.Path) -> None:
        words = ["--default_seq_length=13", "--tokenize_with_offsets"]
        self._export("preprocessing", str(folder / "preprocessor"), *words)

    def _export(self, kind: str, path: str, *words: str) -> None:
        checkpoint = f"--model_checkpoint_path={self.folder}/bert_model.ckpt"
        named = [f"--export_type={kind}", f"--export_path={path}"]
        given = ["", checkpoint, *named, *words]
        assert main_lib.run(export_hub.main, given) == 0

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
    """Writes a checkpoint with random weights and exports it.

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
            Exports(folder, config, model, factory).write_encoder()

        folder = once.written(factory, "tf_hub_exports", write)
        _made.append(Exports(folder, config, model, factory))
    return _made[0]
