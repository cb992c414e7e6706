"""The original's optimizer in numpy, float64."""

import numpy as np


class NumpyAdam:
    """The original's update, one variable at a time."""

    def __init__(self, values):
        self.values = dict(values)
        self.m = {name: np.zeros_like(v) for name, v in values.items()}
        self.v = {name: np.zeros_like(v) for name, v in values.items()}

    def step(self, gradients, rate):
        norm = np.sqrt(sum(np.square(g).sum() for g in gradients.values()))
        for name, gradient in gradients.items():
            g = gradient * min(1.0, 1.0 / norm)
            self.m[name] = 0.9 * self.m[name] + 0.1 * g
            self.v[name] = 0.999 * self.v[name] + 0.001 * g * g
            update = self.m[name] / (np.sqrt(self.v[name]) + 1e-6)
            if not any(part in name for part in ("LayerNorm", "bias")):
                update += 0.01 * self.values[name]
            self.values[name] = self.values[name] - rate * update
        return norm
