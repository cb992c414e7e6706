"""Training and evaluation steps under a strategy.

This module does not depend on BERT. An `Objective` provides the losses:

    loss.weight(batch) -> weight of the whole batch
    loss.sums(batch, outputs) -> sums over a part of the batch

The loss of a step is the sum over its losses of loss / weight. Both are taken
over the whole batch, and the gradient is clipped once, after the sum. So the
loss does not depend on the distribution of the examples:

    batch           0 1 2 3 4 5 6 7
    replica         0 . . . 1 . . .
    micro-batch     0 . 1 . 0 . 1 .     --gradient_accumulation_steps=2

Losses that compare rows get the outputs of all micro-batches of a replica. To
compare rows of several replicas, `sums` has to gather them.

With several workers, each one only reads the examples of its own replicas.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager

import keras
import tensorflow as tf

from bert.training import distribution, optimization, workers
from bert.training.objective import Objective

TOKENS = "tokens"
_FIRST_LOSS_SCALE = 2.0**15
_STEPS_TO_DOUBLE = 2000


class TrainStep:
    """Computes training and evaluation steps.

    A step with a non-finite loss or gradient leaves all bits of variables and
    moments unchanged. In float16 the loss is scaled up, so that small gradients
    do not vanish. The scale is halved when the gradient, summed over replicas,
    is not finite, and doubled after 2,000 finite steps (Micikevicius et al.
    2017, arXiv:1710.03740).

    Args:
        model: keras.Model. Takes a batch and returns outputs.
        objective: Objective. Provides the losses.
        optimizer: AdamWeightDecay. Built in the strategy's scope.
        strategy: tf.distribute.Strategy. Devices.
        seed: int. Seed of the dropout masks.
        inside_step: function. int32 [3] seed -> context manager, entered
            around the model and its losses in training. Dropout gets the seed,
            and the layers get the options of `fused_ops.step_scope`.
        batch_tokens: function. Batch -> float32 scalar, its number of tokens.
        use_xla: bool. Whether to compile the step as one program: forward and
            backward pass, all-reduce, clipping and in-place update. Evaluation
            is a second program. With several CPUs, whose all-reduce cannot be
            compiled, only forward and backward pass are. Default: False.
        accumulation_steps: int. Micro-batches of a replica, computed one after
            the other. Default: 1.

    Attributes:
        sum_names: tuple of str. Names of the sums of a step, in order.
        bad_steps: int. Number of successive steps that were not finite.
    """

    def __init__(
        self,
        model: keras.Model,
        objective: Objective,
        optimizer: optimization.AdamWeightDecay,
        strategy: tf.distribute.Strategy,
        seed: int,
        inside_step: Callable[[tf.Tensor], AbstractContextManager[None]],
        batch_tokens: Callable[[dict], tf.Tensor],
        use_xla: bool = False,
        accumulation_steps: int = 1,
    ):
        self.model, self.objective = model, objective
        self.optimizer = optimizer
        self.strategy = strategy
        self.bad_steps = 0
        self._seed, self._inside_step = seed % 2**31, inside_step

        self._batch_tokens = batch_tokens
        self._accumulation_steps = accumulation_steps
        self._variables = self.model.trainable_variables

        self.sum_names = tuple(
            f"{loss.name}_{name}"
            for loss in objective.losses
            for name in ("loss", "accuracy", "weight")
            if name != "accuracy" or loss.has_accuracy
        ) + (TOKENS,)

        self.use_xla = use_xla
        if use_xla and distribution.can_compile_whole(strategy):
            compiled = functools.partial(
                tf.function, jit_compile=True, autograph=False
            )
            self._replica_step = compiled(self._replica_step)
            self._replica_evaluation = compiled(self._replica_evaluation)
        elif use_xla and not distribution.is_tpu(strategy):
            self._gradients = tf.function(
                self._gradients, jit_compile=True, autograph=False
            )

        self._whole_step = tf.function(self._step, autograph=False)

        with strategy.scope():
            # Number of steps without an update.
            self._skipped = _replicated_variable(tf.constant(0, tf.int64))
            self._scaling = None  # scale of the loss, steps since it changed
            if self.model.compute_dtype == "float16":
                self._scaling = _replicated_variable([_FIRST_LOSS_SCALE, 0.0])

    def train(self, iterator, num_steps):
        """Runs training steps, each on the next batch.

        XLA programs have static shapes. If the batches have several shapes,
        the host reads each batch and runs the program of its shape.

        Args:
            iterator: iterator over batches. With several workers, it yields
                this worker's part of each batch.
            num_steps: int32 scalar. Number of steps.

        Returns:
            float32 [num_steps, len(sum_names) + 2]: sums over each step's
            batch, the gradient norm, and the loss scale. The caller adds them
            up, so that bits do not depend on the steps in a call.
        """
        specs = tf.nest.flatten(iterator.element_spec)

        if self.use_xla and not all(
            spec.shape.is_fully_defined() for spec in specs
        ):
            return tf.stack(
                [self._whole_step(next(iterator)) for _ in range(num_steps)]
            )

        return self._train(iterator, num_steps)

    @tf.function
    def _train(self, iterator, num_steps):
        sums = tf.TensorArray(tf.float32, num_steps)
        for i in tf.range(num_steps):
            sums = sums.write(i, self._step(next(iterator)))
        return sums.stack()

    @tf.autograph.experimental.do_not_convert  # AutoGraph takes seconds
    def _step(self, batch):
        """Takes a step on a whole batch, on all devices."""
        stats = self.strategy.run(self._replica_step, args=(batch,))
        stats = self.strategy.experimental_local_results(stats)[0]

        # A step that is not finite has changed no variable.
        finite = tf.reduce_all(tf.math.is_finite(stats))
        self._skipped.assign_add(tf.cast(~finite, tf.int64))
        if self._scaling is not None:
            _rescale(self._scaling, finite)
        self.optimizer.iterations.assign_add(1)
        return stats

    def state_dict(self) -> dict:
        """State that is not in a checkpoint's tensors, as JSON values."""
        state = {
            "bad_steps": self.bad_steps,
            "skipped": int(self._skipped.numpy()),
        }
        if self._scaling is not None:
            scale, num_steps = self._scaling.numpy().tolist()
            state |= {
                "loss_scale": scale.hex(),
                "loss_scale_steps": int(num_steps),
            }
        return state

    def load_state_dict(self, state: dict) -> None:
        """Restores the values of `state_dict`."""
        self.bad_steps = state["bad_steps"]
        # Earlier versions did not count skipped steps.
        self._skipped.assign(state.get("skipped", 0))
        if self._scaling is not None and "loss_scale" in state:
            scale = float.fromhex(state["loss_scale"])
            self._scaling.assign([scale, float(state["loss_scale_steps"])])

    @tf.autograph.experimental.do_not_convert  # AutoGraph takes seconds
    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        normalizers = self._normalizers(context, batch)
        scale = None

        if self._scaling is not None:
            scale = self._scaling[0]
            normalizers = {name: x / scale for name, x in normalizers.items()}

        # Dropout masks depend on these numbers. The worker holds the batches
        # of its own replicas, and this replica takes its part of them.
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        replicas = context.num_replicas_in_sync
        local_replicas = replicas // workers.index_and_count()[1]
        count = self._accumulation_steps
        step = tf.cast(self.optimizer.iterations.value, tf.int32)

        def micro_batch(i):
            seed = tf.stack([self._seed, step, replica + replicas * i])
            part = _part(
                batch,
                replica % local_replicas * count + i,
                local_replicas * count,
            )
            return part, normalizers, seed

        if count == 1:
            gradients, sums = self._gradients(*micro_batch(0))
        elif any(loss.compares_rows for loss in self.objective.losses):
            own = _part(batch, replica % local_replicas, local_replicas)
            gradients, sums = self._cached_gradients(own, micro_batch)
        else:
            gradients, sums = self._accumulate(
                lambda i: self._gradients(*micro_batch(i)),
                (tf.zeros(len(self.sum_names)),),
            )

        gradients, norm, factor = optimization.sum_and_clip_factor(
            gradients, scale
        )
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        stats = tf.concat([sums, [norm, 1.0 if scale is None else scale]], 0)

        self.optimizer.update(
            gradients,
            self._variables,
            rate=self.optimizer.learning_rate,  # of the schedule, at this step
            learn=tf.reduce_all(tf.math.is_finite(stats)),
            factor=factor,
            skipped=self._skipped,
        )
        return stats

    def _normalizers(self, context, batch):
        """Normalizers of the losses over the whole batch, of all workers."""
        count = workers.index_and_count()[1]
        if count == 1:
            return self._weights(batch)

        replicas = context.num_replicas_in_sync
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        part = _part(batch, replica % (replicas // count), replicas // count)
        normalizers = self._weights(part)
        # The weight of an empty batch, such as 1e-5, counts only once.
        of_empty = self._weights({k: v[:0] for k, v in batch.items()})

        total = context.all_reduce(
            tf.distribute.ReduceOp.SUM, tf.stack(list(normalizers.values()))
        )
        return {
            name: total[i] - (replicas - 1.0) * of_empty[name]
            for i, name in enumerate(normalizers)
        }

    def _weights(self, batch):
        """Name of each loss -> its weight."""
        losses = self.objective.losses
        return {loss.name: loss.weight(batch) for loss in losses}

    def _accumulate(self, compute, others):
        """Adds gradients and other sums over a replica's micro-batches."""
        # A loop, so that a micro-batch's activations are freed before the
        # next one's are computed.
        zeros = [tf.zeros(v.shape) for v in self._variables]
        _, total = tf.while_loop(
            lambda i, _: i < self._accumulation_steps,
            lambda i, total: (
                i + 1,
                tf.nest.map_structure(tf.add, total, compute(i)),
            ),
            (0, (zeros, *others)),
            parallel_iterations=1,
        )
        return total

    def _cached_gradients(self, own, micro_batch):
        """Gradients and sums of a replica for losses that compare rows.

        The outputs are computed twice. First for the losses and the gradients
        of the outputs, without storing activations; then for the gradients of
        the variables, one micro-batch at a time (Gao et al. 2021,
        arXiv:2101.06983). Dropout is a function of the seed, so both times it
        is the same.
        """
        _, normalizers, first_seed = micro_batch(0)

        def outputs_of(i):
            part, _, seed = micro_batch(i)
            with self._inside_step(seed):
                return self._outputs(part, training=True)

        specs = {
            name: tf.TensorSpec(x.shape, x.dtype)
            for name, x in self.model.output.items()
        }
        cached = tf.map_fn(
            outputs_of,
            tf.range(self._accumulation_steps),
            parallel_iterations=1,
            fn_output_signature=specs,
        )

        # Micro-batches [N, b, ...] become the rows [N * b, ...] of a replica.
        with tf.GradientTape() as tape, self._inside_step(first_seed):
            tape.watch(cached)
            outputs = {
                name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
                for name, x in cached.items()
            }
            sums = self._sums(own, outputs)
            loss = self._loss(sums, normalizers)
        upstream = tape.gradient(loss, cached)

        def gradients_of(i):
            with tf.GradientTape() as tape:
                outputs = outputs_of(i)
            upstream_of_part = {name: x[i] for name, x in upstream.items()}
            return (self._vjp(tape, outputs, upstream_of_part),)

        (gradients,) = self._accumulate(gradients_of, ())
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    def _gradients(self, part, normalizers, seed):
        """Gradients and sums of a part of the batch."""
        with tf.GradientTape() as tape:
            with self._inside_step(seed):
                outputs = self._outputs(part, training=True)
                sums = self._sums(part, outputs)

            loss = self._loss(sums, normalizers)

        gradients = self._vjp(tape, loss, None)
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    def _loss(self, sums, normalizers):
        return tf.add_n(
            [
                sums[f"{name}_loss"] / normalizers[name]
                for name in self.objective.names
            ]
        )

    def _vjp(self, tape, target, upstream):
        """Dense gradients of the variables."""
        variables = [v.value for v in self._variables]
        gradients = tape.gradient(target, variables, upstream)
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _sums(self, part, outputs):
        sums = {TOKENS: self._batch_tokens(part)}
        for loss in self.objective.losses:
            for name, x in loss.sums(part, outputs).items():
                sums[f"{loss.name}_{name}"] = x
        return sums

    @tf.function(autograph=False)
    def evaluate(self, batch):
        """Sums over a whole batch, 0 and 1: float32 [len(sum_names) + 2]."""
        result = self.strategy.run(self._replica_evaluation, args=(batch,))
        return self.strategy.experimental_local_results(result)[0]

    def _replica_evaluation(self, batch):
        context = tf.distribute.get_replica_context()
        part = _part(
            batch,
            tf.cast(context.replica_id_in_sync_group, tf.int32),
            context.num_replicas_in_sync,
        )
        sums = self._sums(part, self._outputs(part, training=False))
        sums = tf.stack([sums[name] for name in self.sum_names])
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return tf.concat([sums, [0.0, 1.0]], 0)

    def _outputs(self, part, training):
        # With unexpected inputs Keras may silently use the wrong ones.
        inputs = {name: part[name] for name in self.model.input}
        return self.model(inputs, training=training)


def _replicated_variable(start) -> tf.Variable:
    """Variable of the state of the steps, equal on all replicas."""
    return tf.Variable(
        start,
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def _part(batch, index, count):
    """Part with this index, of `count` equal parts of a batch."""
    if count == 1:
        return batch
    part = {}
    for name, values in batch.items():
        size = values.shape[0] // count
        # XLA slices need a constant size, but the start may vary.
        begin = [index * size] + [0] * (values.shape.rank - 1)
        rest = [-1 if n is None else n for n in values.shape[1:]]
        part[name] = tf.slice(values, begin, [size, *rest])
    return part


def _rescale(scaling: tf.Variable, finite: tf.Tensor) -> None:
    """Updates the loss scale and its steps after a step."""
    scale, num_steps = tf.unstack(scaling)
    num_steps = tf.where(finite, num_steps + 1.0, 0.0)
    scale = tf.where(finite, scale, tf.maximum(scale / 2.0, 1.0))
    double = num_steps >= _STEPS_TO_DOUBLE
    scaling.assign(tf.where(double, [2.0 * scale, 0.0], [scale, num_steps]))
