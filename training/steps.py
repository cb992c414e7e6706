"""Steps of training and of evaluation, under a strategy.

It knows no BERT. A task hands it a model and two functions:

    batch_weights(batch) -> objective -> weight of the whole batch
    batch_sums(batch, outputs) -> "<objective>_loss", "<objective>_accuracy",
        "<objective>_weight" -> sums over the rows of one replica

The loss of a step is the sum over objectives of loss / weight, where both are
taken over the whole batch: it does not depend on the number of replicas.
"""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from training import optimization


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        model: takes a batch, returns outputs.
        objectives: names, in the order they are shown.
        batch_weights, batch_sums: see above.
        seed_scope: hands an int32 [2] seed to the model's dropout.
    """

    model: keras.Model
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict[str, tf.Tensor]]
    batch_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    seed_scope: Callable


class Steps:
    """Training and evaluation steps of a task.

    Args:
        task: what is trained.
        optimizer: built in the strategy's scope.
        strategy: the devices.
        seed: of dropout.
        use_xla: compile forward and backward pass.

    Attributes:
        sum_names: what the sums of a step are, in their order.
    """

    def __init__(
        self,
        task: Task,
        optimizer: optimization.AdamWeightDecay,
        strategy: tf.distribute.Strategy,
        seed: int,
        use_xla: bool = False,
    ):
        self.task = task
        self.optimizer = optimizer
        self.strategy = strategy
        self._seed = seed % 2**31
        self._variables = task.model.trainable_variables
        self.sum_names = tuple(
            f"{objective}_{what}"
            for objective in task.objectives
            for what in ("loss", "accuracy", "weight")
        )
        self._gradients = tf.function(self._gradients, jit_compile=use_xla)

    @tf.function
    def train(self, iterator, num_steps):
        """Takes some steps, each on its next batch.

        Args:
            iterator: over whole batches.
            num_steps: int32 scalar.

        Returns:
            float32 [num_steps, len(sum_names) + 1]: sums over the rows of
            each step's batch, and the gradient norm last. They are added up
            outside: how many steps share a call changes no bit.
        """
        sums = tf.TensorArray(tf.float32, num_steps)
        for i in tf.range(num_steps):
            batch = next(iterator)
            result = self.strategy.run(self._replica_step, args=(batch,))
            result = self.strategy.experimental_local_results(result)[0]
            sums = sums.write(i, result)
            self.optimizer.iterations.assign_add(1)
        return sums.stack()

    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        seed = tf.random.experimental.stateless_fold_in(
            tf.stack([self._seed, step]), replica
        )
        weights = self.task.batch_weights(batch)
        rows = self._rows_of(batch, context)
        gradients, sums = self._gradients(rows, weights, seed)
        gradients, norm = optimization.reduce_and_clip(gradients)
        rate = self.optimizer.learning_rate
        self.optimizer.update(gradients, self._variables, rate)
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return tf.concat([sums, [norm]], 0)

    def _gradients(self, rows, weights, seed):
        """Gradients of this replica's share of the loss, and its sums."""
        with tf.GradientTape() as tape:
            with self.task.seed_scope(seed):
                outputs = self._outputs(rows, training=True)
            sums = self.task.batch_sums(rows, outputs)
            loss = tf.add_n(
                [
                    sums[f"{objective}_loss"] / weights[objective]
                    for objective in self.task.objectives
                ]
            )
        gradients = tape.gradient(loss, [v.value for v in self._variables])
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    @tf.function
    def evaluate(self, batch):
        """float32 [len(sum_names) + 1]: sums over a whole batch, and 0."""

        def replica_step(batch):
            context = tf.distribute.get_replica_context()
            rows = self._rows_of(batch, context)
            outputs = self._outputs(rows, training=False)
            sums = self.task.batch_sums(rows, outputs)
            sums = tf.stack([sums[name] for name in self.sum_names])
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
            return tf.concat([sums, [0.0]], 0)

        result = self.strategy.run(replica_step, args=(batch,))
        return self.strategy.experimental_local_results(result)[0]

    def _outputs(self, rows, training):
        # A functional model takes wrong inputs, unseen, if there are more.
        inputs = {name: rows[name] for name in self.task.model.input}
        return self.task.model(inputs, training=training)

    def _rows_of(self, batch, context):
        """This replica's rows of the whole batch."""
        replicas = context.num_replicas_in_sync
        if replicas == 1:
            return batch
        replica = context.replica_id_in_sync_group
        rows = {}
        for name, values in batch.items():
            size = values.shape[0] // replicas
            start = tf.cast(replica, tf.int32) * size
            rows[name] = tf.ensure_shape(
                values[start : start + size], [size, *values.shape[1:]]
            )
        return rows
