"""Callback that evaluates on held-out examples after each epoch."""

import keras

# Scores of each entity type, for example, would fill the progress line.
_LONG_NAMES = {"macro_f1", "micro_f1", "exact_match"}


class Validation(keras.callbacks.Callback):
    """Adds the metrics of held-out examples to the logs of each epoch.

    Args:
        examples: list. The held-out examples.
    """

    def __init__(self, examples: list):
        super().__init__()
        self._held_out = examples

    def on_epoch_end(self, epoch, logs):
        """Adds the metrics, which the callbacks after this one read."""
        scores = self.model._scores(self._held_out)
        logs |= {
            f"val_{name}": value
            for name, value in scores.items()
            if "_" not in name or name in _LONG_NAMES
        }
