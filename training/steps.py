"""Steps of training and of evaluation, under a strategy.

It knows no BERT. A task hands it a model and two functions:

    batch_weights(batch) -> objective -> weight of the whole batch
    batch_sums(batch, outputs) -> "<objective>_loss", "<objective>_accuracy",
        "<objective>_weight" -> sums over some rows of it; a regression has no
        accuracy

The loss of a step is the sum over objectives of loss / weight, where both are
taken over the whole batch, and its gradient is clipped once, after the sum.
So it does not depend on how the rows are dealt out:

    batch           0 1 2 3 4 5 6 7
    replica         0 . . . 1 . . .
    micro-batch     0 . 1 . 0 . 1 .     --gradient_accumulation_steps=2
"""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from training import optimization

TOKENS = "tokens"
_FIRST_LOSS_SCALE = 2.0**15
_STEPS_TO_DOUBLE = 2000


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        model: takes a batch, returns outputs.
        objectives: names, in the order they are shown.
        batch_weights, batch_sums: see above.
        seed_scope: hands an int32 [2] seed to the model's dropout; entered
            around the model and `batch_sums` in training.
        batch_tokens: batch -> float32 scalar, the tokens of its rows; None if
            they are not counted.
        measures: of each objective: what `batch_sums` sums beside the weight.
    """

    model: keras.Model
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict[str, tf.Tensor]]
    batch_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    seed_scope: Callable
    batch_tokens: Callable[[dict], tf.Tensor] | None = None
    measures: tuple[str, ...] = ("loss", "accuracy")


class Steps:
    """Training and evaluation steps of a task.

    A step whose loss or gradient is not finite changes no bit of variables
    and moments. A model that computes in float16 has its loss scaled up, so
    that small gradients do not vanish: the scale is halved where the
    gradient, after the sum over replicas, is not finite, and doubled after
    2,000 steps that are (Micikevicius et al. 2017, arXiv:1710.03740).

    Args:
        task: what is trained.
        optimizer: built in the strategy's scope.
        strategy: the devices.
        seed: of dropout.
        use_xla: compile forward and backward pass.
        accumulation_steps: micro-batches of a replica's rows, one after the
            other.

    Attributes:
        sum_names: what the sums of a step are, in their order.
        bad_steps: so many of the last steps were not finite.
    """

    def __init__(
        self,
        task: Task,
        optimizer: optimization.AdamWeightDecay,
        strategy: tf.distribute.Strategy,
        seed: int,
        use_xla: bool = False,
        accumulation_steps: int = 1,
    ):
        self.task = task
        self.optimizer = optimizer
        self.strategy = strategy
        self.bad_steps = 0
        self._seed = seed % 2**31
        self._accumulation_steps = accumulation_steps
        self._variables = task.model.trainable_variables
        self.sum_names = tuple(
            f"{objective}_{what}"
            for objective in task.objectives
            for what in (*task.measures, "weight")
        )
        if task.batch_tokens is not None:
            self.sum_names += (TOKENS,)
        self._gradients = tf.function(
            self._gradients, jit_compile=use_xla, autograph=False
        )
        self._scaling = None  # scale of the loss, and steps since it changed
        if task.model.compute_dtype == "float16":
            with strategy.scope():
                self._scaling = tf.Variable(
                    [_FIRST_LOSS_SCALE, 0.0],
                    trainable=False,
                    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
                )

    @tf.function
    def train(self, iterator, num_steps):
        """Takes some steps, each on its next batch.

        Args:
            iterator: over whole batches.
            num_steps: int32 scalar.

        Returns:
            float32 [num_steps, len(sum_names) + 2]: sums over the rows of
            each step's batch, the gradient norm, and what the loss was
            scaled by. They are added up outside: how many steps share a call
            changes no bit.
        """
        rows = tf.TensorArray(tf.float32, num_steps)
        for i in tf.range(num_steps):
            batch = next(iterator)
            row = self.strategy.run(self._replica_step, args=(batch,))
            row = self.strategy.experimental_local_results(row)[0]
            rows = rows.write(i, row)
            if self._scaling is not None:
                self._rescale(row)
            self.optimizer.iterations.assign_add(1)
        return rows.stack()

    def skip(self, iterator) -> None:
        """Takes a step on the next batch without learning from it."""
        next(iterator)
        self.optimizer.iterations.assign_add(1)

    def state_dict(self) -> dict:
        """What a checkpoint's tensors do not hold, as JSON values."""
        state = {"bad_steps": self.bad_steps}
        if self._scaling is not None:
            scale, steps = self._scaling.numpy().tolist()
            state |= {"loss_scale": scale.hex(), "loss_scale_steps": int(steps)}
        return state

    def load_state_dict(self, state: dict) -> None:
        """Sets what `state_dict` returned."""
        self.bad_steps = state.get("bad_steps", 0)
        if self._scaling is not None and "loss_scale" in state:
            scale = float.fromhex(state["loss_scale"])
            self._scaling.assign([scale, float(state["loss_scale_steps"])])

    @tf.autograph.experimental.do_not_convert  # it takes seconds
    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        weights = self.task.batch_weights(batch)
        scale = None
        if self._scaling is not None:
            scale = self._scaling[0]
            weights = {name: x / scale for name, x in weights.items()}
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        replicas = context.num_replicas_in_sync
        count = self._accumulation_steps
        step = tf.cast(self.optimizer.iterations.value, tf.int32)

        def micro_batch(i):
            seed = tf.random.experimental.stateless_fold_in(
                tf.stack([self._seed, step]), replica + replicas * i
            )
            rows = _part(batch, replica * count + i, replicas * count)
            return self._gradients(rows, weights, seed)

        gradients, sums = self._add_up(micro_batch)
        gradients, norm, factor = optimization.reduce_and_clip(gradients, scale)
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        row = tf.concat([sums, [norm, 1.0 if scale is None else scale]], 0)
        self.optimizer.update(
            gradients,
            self._variables,
            self.optimizer.learning_rate,
            tf.reduce_all(tf.math.is_finite(row)),
            factor,
        )
        return row

    def _add_up(self, micro_batch):
        """Gradients of this replica's share of the loss, and its sums."""
        count = self._accumulation_steps
        if count == 1:
            return micro_batch(0)
        # A loop, so that one micro-batch's activations are gone before the
        # next one's are made.
        zeros = [tf.zeros(v.shape) for v in self._variables]
        _, total = tf.while_loop(
            lambda i, _: i < count,
            lambda i, total: (
                i + 1,
                tf.nest.map_structure(tf.add, total, micro_batch(i)),
            ),
            (0, (zeros, tf.zeros(len(self.sum_names)))),
            parallel_iterations=1,
        )
        return total

    def _gradients(self, rows, weights, seed):
        """Gradients of the loss's share that these rows have, and sums."""
        with tf.GradientTape() as tape:
            with self.task.seed_scope(seed):
                outputs = self._outputs(rows, training=True)
                sums = self._sums(rows, outputs)
            loss = tf.add_n(
                [
                    sums[f"{objective}_loss"] / weights[objective]
                    for objective in self.task.objectives
                ]
            )
        gradients = tape.gradient(loss, [v.value for v in self._variables])
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    def _sums(self, rows, outputs):
        sums = self.task.batch_sums(rows, outputs)
        if self.task.batch_tokens is not None:
            sums = {**sums, TOKENS: self.task.batch_tokens(rows)}
        return sums

    def _rescale(self, row):
        """Sets the scale of the loss after a step."""
        scale, steps = tf.unstack(self._scaling)
        finite = tf.reduce_all(tf.math.is_finite(row))
        steps = tf.where(finite, steps + 1.0, 0.0)
        scale = tf.where(finite, scale, tf.maximum(scale / 2.0, 1.0))
        double = steps >= _STEPS_TO_DOUBLE
        self._scaling.assign(
            tf.where(double, [2.0 * scale, 0.0], [scale, steps])
        )

    @tf.function(autograph=False)
    def evaluate(self, batch):
        """float32 [len(sum_names) + 2]: sums over a whole batch, 0 and 1."""

        def replica_step(batch):
            context = tf.distribute.get_replica_context()
            rows = _part(
                batch,
                tf.cast(context.replica_id_in_sync_group, tf.int32),
                context.num_replicas_in_sync,
            )
            sums = self._sums(rows, self._outputs(rows, training=False))
            sums = tf.stack([sums[name] for name in self.sum_names])
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
            return tf.concat([sums, [0.0, 1.0]], 0)

        result = self.strategy.run(replica_step, args=(batch,))
        return self.strategy.experimental_local_results(result)[0]

    def _outputs(self, rows, training):
        # A functional model takes wrong inputs, unseen, if there are more.
        inputs = {name: rows[name] for name in self.task.model.input}
        return self.task.model(inputs, training=training)


def _part(batch, index, count):
    """One of equal parts of a batch's rows."""
    if count == 1:
        return batch
    rows = {}
    for name, values in batch.items():
        size = values.shape[0] // count
        # XLA takes a slice from anywhere, but only of a constant size.
        begin = [index * size] + [0] * (values.shape.rank - 1)
        rest = [-1 if n is None else n for n in values.shape[1:]]
        rows[name] = tf.slice(values, begin, [size, *rest])
    return rows
