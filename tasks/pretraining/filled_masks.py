"""Predictions for a few masks, written at each evaluation for the report.

{"step": 500, "sentences": [{"tokens": ["the", "[MASK]"], "masks": [
    {"position": 1, "label": "cat", "predicted": [["dog", 0.5], ...]}]}]}
"""

import json
import os
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from common import storage
from common.storage import write_whole
from data import features
from data.text import vocabulary

FILE = "filled_masks.jsonl"
_SENTENCES, _MASKS, _WORDS, _LENGTH = 4, 3, 3, 64


class FilledMasks:
    """The most probable tokens for masks of the first held-out examples.

    Args:
        folder: output_dir of the run.
        model: from `build_pretraining_model`.
        batches: of held-out examples; the first one is used.
        vocab_file: vocabulary of the records.
    """

    def __init__(
        self,
        folder: str,
        model,
        batches: Iterable[dict],
        vocab_file: str,
    ):
        self._path = os.path.join(folder, FILE)
        batch = next(iter(batches))
        self._batch = {k: v[:_SENTENCES].numpy() for k, v in batch.items()}
        vocab = vocabulary.read_vocabulary(vocab_file)
        self._tokens, self._mask = list(vocab), vocab.get(vocabulary.MASK)

        self._model = model
        self._inputs = {name: self._batch[name] for name in model.input}

    def write(self, step: int) -> None:
        """Adds the predictions of the current weights; drops later steps."""
        logits = self._model(self._inputs)["masked_lm_logits"]
        best = tf.math.top_k(tf.nn.softmax(logits), _WORDS)
        sentences = self._sentences(best.indices.numpy(), best.values.numpy())
        line = {"step": step, "sentences": sentences}
        kept = []
        if storage.exists(self._path):
            with storage.open_text(self._path) as file:
                kept = [x for x in file if json.loads(x)["step"] < step]
        write_whole(self._path, "".join([*kept, json.dumps(line) + "\n"]))

    def _sentences(self, best: np.ndarray, shares: np.ndarray) -> list[dict]:
        sentences, batch = [], self._batch
        for row, mask in enumerate(batch[features.INPUT_MASK]):
            ids = batch[features.INPUT_IDS][row, : mask.sum()][:_LENGTH]
            positions = batch[features.MASKED_LM_POSITIONS][row]
            masks = []
            for i in np.flatnonzero(batch[features.MASKED_LM_WEIGHTS][row]):
                position = int(positions[i])
                # Some keep their token, or have a random one.
                if position >= len(ids) or ids[position] != self._mask:
                    continue
                words = map(self._token, best[row, i])
                rounded = shares[row, i].astype(float).round(4).tolist()
                label = self._token(batch[features.MASKED_LM_IDS][row, i])
                masks.append(
                    {
                        "position": position,
                        "label": label,
                        "predicted": list(zip(words, rounded)),
                    }
                )
            tokens = [self._token(x) for x in ids]
            sentences.append({"tokens": tokens, "masks": masks[:_MASKS]})
        return sentences

    def _token(self, i: int) -> str:
        """The token; a config may have more ids than the vocabulary."""
        return self._tokens[i] if i < len(self._tokens) else f"id {i}"
