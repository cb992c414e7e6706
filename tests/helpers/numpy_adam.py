"""The original's optimizer and its others in numpy, float64."""

import numpy as np


class NumpyAdam:
    """The update of a rule, one variable at a time, after the clip."""

    def __init__(self, values, rule="adamw"):
        self.values = dict(values)
        self.rule = rule
        self.steps = 0
        self.m = {name: np.zeros_like(v) for name, v in values.items()}
        self.v = {name: np.zeros_like(v) for name, v in values.items()}

    def step(self, gradients, rate):
        norm = np.sqrt(sum(np.square(g).sum() for g in gradients.values()))
        self.steps += 1
        for name, gradient in gradients.items():
            g = gradient * min(1.0, 1.0 / norm)
            self.m[name] = 0.9 * self.m[name] + 0.1 * g
            self.v[name] = 0.999 * self.v[name] + 0.001 * g * g
            m, v, x = self.m[name], self.v[name], self.values[name]
            if self.rule != "adamw":
                m = m / (1 - 0.9**self.steps)
                v = v / (1 - 0.999**self.steps)
            update = m / (np.sqrt(v) + 1e-6)
            if not any(part in name for part in ("LayerNorm", "bias")):
                update += 0.01 * x
                lengths = np.linalg.norm(x), np.linalg.norm(update)
                if self.rule == "lamb" and all(lengths):
                    update *= lengths[0] / lengths[1]
            self.values[name] = x - rate * update
        return norm
