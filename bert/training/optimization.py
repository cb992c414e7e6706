"""The original's optimizer, two others, and the learning-rate schedules.

The original's Adam is not `keras.optimizers.AdamW`: moments are not corrected
for bias, and decay is added to the update before the learning rate
(google-research/bert `optimization.py`; Loshchilov and Hutter 2017,
arXiv:1711.05101). Nor is LAMB Keras' own, which adapts every variable and adds
decay after the ratio.
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
        peak: learning rate at step 0 of the decay.
        num_train_steps: step at which the learning rate reaches 0.
        num_warmup_steps: number of warm-up steps; 0: none.
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
    """Linear warm-up, the peak, and a decay to 0 over the last steps.

    Before the decay no rate depends on the number of steps, so a run can go
    on without knowing its end (Hu et al. 2024, arXiv:2404.06395). The decay is
    1 - sqrt (Haegele et al. 2024, arXiv:2405.18392), as of ModernBERT.

    Args:
        peak: learning rate after the warm-up.
        num_train_steps: step at which the learning rate reaches 0.
        num_warmup_steps: number of warm-up steps; 0: none.
        num_decay_steps: number of steps of the decay; 0: none.
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
            share = (step - first) / float(self.num_decay_steps)
            rate *= 1.0 - tf.sqrt(tf.clip_by_value(share, 0.0, 1.0))
        return _warm_up(step, self.peak, self.num_warmup_steps, rate)


class WarmupClockDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up over steps, and linear decay to 0 over a time.

    As a run with a budget of hours needs it (Izsak et al. 2021,
    arXiv:2104.07705). The training loop sets the clock before each call.

    Args:
        peak: learning rate at the start of the decay.
        num_train_steps: maximum number of steps.
        num_warmup_steps: number of warm-up steps; 0: none.
        seconds: time after which the learning rate is 0.

    Attributes:
        spent: float32 variable, seconds of training so far; `build` creates
            it, on the devices of the run.
    """

    def __init__(
        self,
        peak: float,
        num_train_steps: int,
        num_warmup_steps: int,
        seconds: float,
    ):
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.seconds = seconds

    def build(self) -> None:
        """Creates the clock, in the scope of a strategy."""
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        self.spent = tf.Variable(0.0, trainable=False, aggregation=first)

    def __call__(self, step):
        """Learning rate of a step, from 0: int scalar -> float32 scalar."""
        share = tf.minimum(self.spent / self.seconds, 1.0)
        decayed = self.peak * (1.0 - share)
        step = tf.cast(step, tf.float32)
        return _warm_up(step, self.peak, self.num_warmup_steps, decayed)


Schedule = WarmupLinearDecay | WarmupStableDecay | WarmupClockDecay


def _warm_up(step, peak: float, num_warmup_steps: int, later):
    """Linear warm-up to a peak, and the rate `later` after it."""
    # Without a warm-up there is nothing to divide by.
    if not num_warmup_steps:
        return later
    warmup = float(num_warmup_steps)
    return tf.where(step < warmup, peak * step / warmup, later)


def is_excluded(path: str) -> bool:
    """Whether weight decay and LAMB's ratio skip the variable of this path."""
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
        value, gradient, m, v: float32 tensors of one shape: the variable,
            its gradient and its two moments.
        rate: float32 scalar, the learning rate.
        step: float32 scalar, number of this update, from 1.
        decay: weight decay; None for an excluded variable.
        beta_1, beta_2: decay rates of the moments.
        epsilon: added to the root of the second moment.
        corrected: whether moments are corrected for bias, as in AdamW.
            Without it the first steps are up to six times as long, which
            harms some short fine-tuning runs (Zhang et al. 2021,
            arXiv:2006.05987).

    Returns:
        the new (value, m, v).
    """
    age = step if corrected else None
    update, m, v = _direction(gradient, m, v, age, beta_1, beta_2, epsilon)

    # After the moments, which know nothing of the decay.
    if decay:
        update += decay * value
    return value - rate * update, m, v


def lamb(value, gradient, m, v, rate, step, *, decay, beta_1, beta_2, epsilon):
    """One step of LAMB on one variable (You et al. 2019, arXiv:1904.00962).

    Algorithm 2 of the paper, with its correction of the moments for bias and
    with the identity for phi: the update gets the norm of the variable. An
    excluded variable is not adapted. If a norm is 0, the ratio is 1.

    Args:
        value, gradient, m, v, rate, step, decay, beta_1, beta_2, epsilon: as
            for `adam_weight_decay`.

    Returns:
        the new (value, m, v).
    """
    update, m, v = _direction(gradient, m, v, step, beta_1, beta_2, epsilon)
    if decay is None:
        return value - rate * update, m, v
    update += decay * value

    # Each variable moves by the same share of its own length.
    norm, length = tf.norm(value), tf.norm(update)
    has_ratio = (norm > 0.0) & (length > 0.0)
    ratio = tf.where(has_ratio, norm / length, 1.0)
    return value - rate * ratio * update, m, v


RULES: dict[str, Callable] = {
    "adamw": adam_weight_decay,
    "corrected_adamw": functools.partial(adam_weight_decay, corrected=True),
    "lamb": lamb,
}


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


def reduce_and_clip(
    gradients: list, loss_scale=None
) -> tuple[list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """Sums gradients over replicas; computes the factor that clips them.

    Called in a replica's context. Clipping after the sum makes the update
    independent of the number of replicas. `AdamWeightDecay.update` applies
    the factor, which saves reading and writing the gradients once.

    Args:
        gradients: one per variable, sparse or dense.
        loss_scale: float32 scalar, the factor of the loss, or None.

    Returns:
        (dense gradients, float32; their norm, the factor that clips them: NaN
        where the norm is not finite, as of `tf.clip_by_global_norm`).
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

    # On a GPU each sum is a kernel, which takes longer to launch than to run.
    parts = [x for x in gradients if x.shape.rank != 1]
    if vectors := [x for x in gradients if x.shape.rank == 1]:
        parts.append(tf.concat(vectors, 0))
    norm = tf.linalg.global_norm(parts)

    factor = CLIP_NORM * tf.minimum(1.0 / norm, 1.0 / CLIP_NORM)

    # 1 / inf is 0, a factor that would hide the damage.
    factor = tf.where(tf.math.is_finite(norm), factor, float("nan"))
    return gradients, norm, factor


@keras.saving.register_keras_serializable("bert")
class AdamWeightDecay(keras.optimizers.Optimizer):
    """Adam with weight decay, as the original trains BERT, or another rule.

    Under `Model.fit` it sums gradients over replicas and clips the sum; a
    custom training loop calls `reduce_and_clip` and `update`.

        model = bert.classifier(encoder, num_labels=2)
        model.compile(bert.AdamWeightDecay(5e-5), "mse")

    Args:
        learning_rate: a float or a schedule.
        decay: weight decay of all variables but biases and layer norm; the
            name weight_decay would make Keras apply its own.
        beta_1, beta_2, epsilon: see `adam_weight_decay`.
        rule: name of the update rule in `RULES`.

    Attributes:
        rate_factors: factor of each variable's learning rate, in the order
            of `build`; default: 1.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        rule: str = "adamw",
        name: str = "adam_weight_decay",
        **kwargs,
    ):
        if kwargs.get("weight_decay") is not None:  # Keras would add its own
            raise UserError("weight_decay", fix="pass decay")
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.decay, self.epsilon, self.rule = decay, epsilon, rule
        self.beta_1, self.beta_2 = beta_1, beta_2

    def build(self, variables):
        """Creates the two moments of each variable."""
        if self.built:
            return
        super().build(variables)

        def moments(variable) -> list[keras.Variable]:
            prefix = variable.path.replace("/", "_")
            return [  # float32 also of lower policies, which lack the range
                self.add_variable(
                    variable.shape, dtype="float32", name=f"{prefix}_{name}"
                )
                for name in ("adam_m", "adam_v")
            ]

        slots = list(map(moments, variables))
        self.adam_m = [m for m, _ in slots]
        self.adam_v = [v for _, v in slots]
        self.rate_factors = (1.0,) * len(variables)

    @property
    def step(self) -> int:
        """Number of steps taken, also of those that changed no variable."""
        return int(tf.convert_to_tensor(self.iterations))

    def named_slots(
        self, named: dict[str, keras.Variable]
    ) -> dict[str, keras.Variable]:
        """The moments under the original's names.

        Args:
            named: name -> variable, at least all that the optimizer was built
                with; variables that are not trained have no moments.

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
            gradients: dense, the same on every replica.
            variables: of those the optimizer was built with; the others keep
                their values and moments.
            rate: float32 scalar, the learning rate.
            learn: bool scalar; if false, variables and moments keep every
                bit, even if the gradients are not finite.
            factor: float32 scalar, factor of the gradients.
            skipped: int scalar, number of steps so far without an update.
        """
        rate = tf.cast(rate, tf.float32)

        # A tensor with gradient_accumulation_steps of Keras, else a variable.
        step = tf.convert_to_tensor(self.iterations) + 1
        step = tf.cast(step - tf.cast(skipped, step.dtype), tf.float32)
        factor = tf.cast(factor, tf.float32)

        # All are computed first, and then assigned together.
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

    # Compiled once per shape; takes a third of the time of single operations.
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
        gradients, _, factor = reduce_and_clip(grads)
        self.update(
            gradients, trainable_variables, learning_rate, factor=factor
        )

    def get_config(self):
        """The optimizer's arguments."""
        names = ("decay", "beta_1", "beta_2", "epsilon", "rule")
        return super().get_config() | {x: getattr(self, x) for x in names}
