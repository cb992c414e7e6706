"""The original's optimizer, two alternatives, and learning-rate schedules.

The original's Adam differs from `keras.optimizers.AdamW`. Its moments are not
corrected for bias, and decay is added to the update before the learning rate.
See google-research/bert `optimization.py`, and Loshchilov and Hutter 2017,
arXiv:1711.05101. LAMB also differs from Keras' version, which adapts every
variable and adds decay after the ratio.
"""

import functools
import re
from collections.abc import Callable

import keras
import tensorflow as tf

from bert.common.errors import UserError

EXCLUDED = r"LayerNorm|layer_norm|bias"
CLIP_NORM = 1.0


@keras.saving.register_keras_serializable("bert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then linear decay to 0.

    The decay starts at step 0, so the learning rate drops a little below the
    peak when the warm-up ends.

        bert.WarmupLinearDecay(5e-5, num_train_steps=100, num_warmup_steps=10)

    Args:
        peak: float. Learning rate at step 0 of the decay.
        num_train_steps: int. Step at which the learning rate reaches 0.
        num_warmup_steps: int. Number of warm-up steps; 0 disables the warm-up.
    """

    def __init__(
        self, peak: float, num_train_steps: int, num_warmup_steps: int
    ):
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step):
        """Learning rate of a step, from 0: int scalar -> float32 scalar."""
        step = tf.cast(step, tf.float32)
        total = float(self.num_train_steps)
        decayed = self.peak * (1.0 - tf.minimum(step, total) / total)
        return _warm_up(step, self.peak, self.num_warmup_steps, decayed)

    def get_config(self):
        """The schedule's arguments."""
        return {
            "peak": self.peak,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
        }


class WarmupStableDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, a constant rate, and a decay to 0 over the last steps.

    Before the decay the rate does not depend on the number of steps, so a run
    can be extended (Hu et al. 2024, arXiv:2404.06395). The decay is 1 - sqrt
    (Haegele et al. 2024, arXiv:2405.18392), as for ModernBERT.

    Args:
        peak: float. Learning rate after the warm-up.
        num_train_steps: int. Step at which the learning rate reaches 0.
        num_warmup_steps: int. Number of warm-up steps; 0 disables the warm-up.
        num_decay_steps: int. Number of decay steps. Default: 0, no decay.
    """

    def __init__(
        self,
        peak: float,
        num_train_steps: int,
        num_warmup_steps: int,
        num_decay_steps: int = 0,
    ):
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.num_decay_steps = num_decay_steps

    def __call__(self, step):
        """Learning rate of a step, from 0: int scalar -> float32 scalar."""
        step, rate = tf.cast(step, tf.float32), tf.constant(self.peak)
        if self.num_decay_steps:
            first = float(self.num_train_steps - self.num_decay_steps)
            fraction = (step - first) / float(self.num_decay_steps)
            rate *= 1.0 - tf.sqrt(tf.clip_by_value(fraction, 0.0, 1.0))
        return _warm_up(step, self.peak, self.num_warmup_steps, rate)


def _warm_up(step, peak: float, num_warmup_steps: int, later):
    """Linear warm-up to a peak, and the rate `later` after it."""
    # Without a warm-up the division would be by 0.
    if not num_warmup_steps:
        return later
    warmup = float(num_warmup_steps)
    return tf.where(step < warmup, peak * step / warmup, later)


def is_excluded(path: str) -> bool:
    """Whether weight decay and LAMB's ratio skip the variable of a path."""
    return re.search(EXCLUDED, path) is not None


def adam_weight_decay(
    value,
    gradient,
    m,
    v,
    rate,
    step,
    *,
    decay,
    beta_1,
    beta_2,
    epsilon,
    corrected=False,
):
    """One step of the original's Adam on one variable, or of AdamW.

    Args:
        value, gradient, m, v: float32 tensors of one shape. The variable, its
            gradient and its two moments.
        rate: float32 scalar. Learning rate.
        step: float32 scalar. Number of this update, from 1.
        decay: float or None. Weight decay; None for an excluded variable.
        beta_1, beta_2: float. Decay rates of the moments.
        epsilon: float. Added to the root of the second moment.
        corrected: bool. Whether moments are corrected for bias, as in AdamW.
            Without it the first steps are up to six times as long, which
            harms some short fine-tuning runs (Zhang et al. 2021,
            arXiv:2006.05987). Default: False.

    Returns:
        The new (value, m, v).
    """
    age = step if corrected else None
    update, m, v = _direction(gradient, m, v, age, beta_1, beta_2, epsilon)

    # Added after the moments, which must not contain the decay.
    if decay:
        update += decay * value
    return value - rate * update, m, v


def lamb(value, gradient, m, v, rate, step, *, decay, beta_1, beta_2, epsilon):
    """One step of LAMB on one variable (You et al. 2019, arXiv:1904.00962).

    Algorithm 2 of the paper, with bias-corrected moments and the identity for
    phi: the update gets the norm of the variable. An excluded variable is not
    adapted. If a norm is 0, the ratio is 1.

    Args:
        value, gradient, m, v, rate, step, decay, beta_1, beta_2, epsilon: see
            `adam_weight_decay`.

    Returns:
        The new (value, m, v).
    """
    update, m, v = _direction(gradient, m, v, step, beta_1, beta_2, epsilon)
    if decay is None:
        return value - rate * update, m, v
    update += decay * value

    # Each variable moves by the same fraction of its own norm.
    norm, length = tf.norm(value), tf.norm(update)
    has_ratio = (norm > 0.0) & (length > 0.0)
    ratio = tf.where(has_ratio, norm / length, 1.0)
    return value - rate * ratio * update, m, v


RULES: dict[str, Callable] = {
    "bert_adam": adam_weight_decay,
    "corrected_adamw": functools.partial(adam_weight_decay, corrected=True),
    "lamb": lamb,
}
_OLD_RULES = {"adamw": "bert_adam"}  # name in saved files -> name


def current_rule(name: str) -> str:
    """Returns the current name of an update rule in a saved file.

        current_rule("adamw")  # "bert_adam"

    Args:
        name: str. Key of `RULES`, or a former one.
    """
    return _OLD_RULES.get(name, name)


def _direction(gradient, m, v, step, beta_1, beta_2, epsilon):
    """Adam's update and moments (Kingma and Ba 2014, arXiv:1412.6980).

    If the step is None, the moments are not corrected for bias.
    """
    m = beta_1 * m + (1.0 - beta_1) * gradient
    v = beta_2 * v + (1.0 - beta_2) * tf.square(gradient)

    if step is None:
        return m / (tf.sqrt(v) + epsilon), m, v
    first = m / (1.0 - tf.pow(beta_1, step))
    second = v / (1.0 - tf.pow(beta_2, step))
    return first / (tf.sqrt(second) + epsilon), m, v


def sum_and_clip_factor(
    gradients: list, loss_scale=None
) -> tuple[list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """Sums gradients over replicas; computes the factor that clips them.

    Must be called in a replica context. Clipping after the sum makes the
    update independent of the number of replicas. `AdamWeightDecay.update`
    applies the factor, which saves one pass over the gradients.

    Args:
        gradients: list. One gradient per variable, sparse or dense.
        loss_scale: float32 scalar or None. Factor of the loss. Default: None.

    Returns:
        (dense float32 gradients, their norm, the factor that clips them). The
        factor is NaN if the norm is not finite, as in
        `tf.clip_by_global_norm`.
    """
    gradients = [
        tf.cast(tf.convert_to_tensor(gradient), tf.float32)
        for gradient in gradients
    ]

    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    if loss_scale is not None:
        gradients = [gradient / loss_scale for gradient in gradients]

    # On a GPU each sum is a kernel whose launch takes longer than its run.
    parts = [x for x in gradients if x.shape.rank != 1]
    if vectors := [x for x in gradients if x.shape.rank == 1]:
        parts.append(tf.concat(vectors, 0))
    norm = tf.linalg.global_norm(parts)

    factor = CLIP_NORM * tf.minimum(1.0 / norm, 1.0 / CLIP_NORM)

    # 1 / inf is 0, a factor that would hide the overflow.
    factor = tf.where(tf.math.is_finite(norm), factor, float("nan"))
    return gradients, norm, factor


@keras.saving.register_keras_serializable("bert")
class AdamWeightDecay(keras.optimizers.Optimizer):
    """Adam with weight decay as in the original BERT, or another update rule.

    With `Model.fit` it sums gradients over replicas and clips the sum. A custom
    training loop calls `sum_and_clip_factor` and `update`.

        model = bert.classifier(encoder, num_labels=2)
        model.compile(bert.AdamWeightDecay(5e-5), "mse")

    Args:
        learning_rate: float or schedule. Default: 5e-5.
        decay: float. Weight decay of all variables except biases and layer
            norms. With the name weight_decay, Keras would apply its own.
            Default: 0.01.
        beta_1: float. Decay rate of the first moment. Default: 0.9.
        beta_2: float. Decay rate of the second moment. Default: 0.999.
        epsilon: float. Added to the root of the second moment. Default: 1e-6.
        rule: str. Name of the update rule in `RULES`: "bert_adam",
            "corrected_adamw" or "lamb". Default: "bert_adam".
        name: str. Name of the optimizer. Default: "adam_weight_decay".
        **kwargs: arguments of `keras.optimizers.Optimizer`.

    Attributes:
        rate_factors: tuple of float. See `build`.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        rule: str = "bert_adam",
        name: str = "adam_weight_decay",
        **kwargs,
    ):
        if kwargs.get("weight_decay") is not None:  # Keras would add its own
            raise UserError("weight_decay", fix="pass decay")
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.decay, self.epsilon, self.rule = decay, epsilon, rule
        self.beta_1, self.beta_2 = beta_1, beta_2

    def build(self, variables, rate_factors: tuple[float, ...] = ()):
        """Creates the two moments of each variable.

        Args:
            variables: list. The variables.
            rate_factors: tuple of float. Factor of each variable's learning
                rate. Default: (), 1 for each.
        """
        if self.built:
            return
        super().build(variables)

        def moments(variable) -> list[keras.Variable]:
            prefix = variable.path.replace("/", "_")
            return [  # float32 under lower policies too, which lack the range
                self.add_variable(
                    variable.shape, dtype="float32", name=f"{prefix}_{name}"
                )
                for name in ("adam_m", "adam_v")
            ]

        slots = list(map(moments, variables))
        self.adam_m = [m for m, _ in slots]
        self.adam_v = [v for _, v in slots]
        self.rate_factors = rate_factors or (1.0,) * len(variables)

    @property
    def step(self) -> int:
        """Number of steps taken, including steps without an update."""
        return int(tf.convert_to_tensor(self.iterations))

    def named_slots(
        self, named: dict[str, keras.Variable]
    ) -> dict[str, keras.Variable]:
        """Moments under the original's names.

        Args:
            named: dict. Name -> variable; it must contain all variables of the
                optimizer. Variables that are not trained have no moments.

        Returns:
            `<name>/adam_m` and `<name>/adam_v` -> moment.
        """
        slots = {}
        for name, variable in named.items():
            if not variable.trainable:
                continue
            index = self._get_variable_index(variable)
            slots[f"{name}/adam_m"] = self.adam_m[index]
            slots[f"{name}/adam_v"] = self.adam_v[index]
        return slots

    def update(
        self,
        gradients: list,
        variables: list,
        rate,
        learn=True,
        factor=1.0,
        skipped=0,
    ) -> None:
        """Updates the variables on every replica.

        Args:
            gradients: list of dense tensors, equal on every replica.
            variables: list of variables that the optimizer was built with. All
                others keep their values and moments.
            rate: float32 scalar. Learning rate.
            learn: bool scalar. If false, variables and moments keep every bit,
                even if the gradients are not finite. Default: True.
            factor: float32 scalar. Factor of the gradients. Default: 1.
            skipped: int scalar. Number of earlier steps without an update.
                Default: 0.
        """
        rate = tf.cast(rate, tf.float32)

        # A tensor under Keras' gradient_accumulation_steps, else a variable.
        step = tf.convert_to_tensor(self.iterations) + 1
        step = tf.cast(step - tf.cast(skipped, step.dtype), tf.float32)
        factor = tf.cast(factor, tf.float32)

        # All new values are computed first, and then assigned together.
        targets, new = [], []
        for variable, gradient in zip(variables, gradients, strict=True):
            index = self._get_variable_index(variable)
            rate_factor = self.rate_factors[index]
            m, v = self.adam_m[index], self.adam_v[index]
            old = [x.value for x in (variable, m, v)]
            targets += old
            new += self._compute(
                *map(tf.convert_to_tensor, old),
                gradient,
                factor,
                rate if rate_factor == 1.0 else rate * rate_factor,
                step,
                learn,
                decay=None if is_excluded(variable.path) else self.decay,
            )

        def assign(strategy, new):
            for target, value in zip(targets, new, strict=True):
                strategy.extended.update(
                    target,
                    lambda variable, value: variable.assign(value),
                    args=(value,),
                    group=False,
                )

        tf.__internal__.distribute.interim.maybe_merge_call(
            assign, tf.distribute.get_strategy(), new
        )

    # Compiled once per shape: a third of the time of single operations.
    @tf.function(jit_compile=True, autograph=False)
    def _compute(self, value, m, v, gradient, factor, rate, step, learn, decay):
        new = RULES[self.rule](
            tf.cast(value, tf.float32),
            gradient * factor,
            m,
            v,
            rate,
            step,
            decay=decay,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
        )
        return [
            tf.where(learn, tf.cast(a, b.dtype), b)
            for a, b in zip(new, (value, m, v))
        ]

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        gradients, _, factor = sum_and_clip_factor(grads)
        self.update(
            gradients, trainable_variables, learning_rate, factor=factor
        )

    def get_config(self):
        """The optimizer's arguments."""
        names = ("decay", "beta_1", "beta_2", "epsilon", "rule")
        return super().get_config() | {x: getattr(self, x) for x in names}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Creates the optimizer from its arguments; see Keras."""
        rule = current_rule(config.get("rule", "bert_adam"))
        config = {**config, "rule": rule}
        return super().from_config(config, custom_objects)
