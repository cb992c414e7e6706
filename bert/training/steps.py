"""Training and evaluation steps under a strategy.

Independent of BERT. A task provides a model and two functions:

    batch_weights(batch) -> objective -> weight of the whole batch
    batch_sums(batch, outputs) -> "<objective>_loss", "<objective>_accuracy",
        "<objective>_weight" -> sums over a part of the batch; a regression has
        no accuracy

The loss of a step is the sum over objectives of loss / weight, where both are
taken over the whole batch, and its gradient is clipped once, after the sum.
So it does not depend on the distribution of the examples:

    batch           0 1 2 3 4 5 6 7
    replica         0 . . . 1 . . .
    micro-batch     0 . 1 . 0 . 1 .     --gradient_accumulation_steps=2

Losses that compare rows take the outputs of all micro-batches of a replica;
what they compare over replicas is for `batch_sums` to gather.

Each of several workers has only the examples of its own replicas.
"""

import functools
from collections.abc import Callable

import keras
import tensorflow as tf

from bert.training import distribution, optimization, workers
from bert.training.task import Task

TOKENS = "tokens"
_FIRST_LOSS_SCALE = 2.0**15
_STEPS_TO_DOUBLE = 2000


class Steps:
    """Computes training and evaluation steps.

    A step whose loss or gradient is not finite changes no bit of variables
    and moments. In float16 the loss is scaled up, so that small gradients do
    not vanish: the scale is halved when the gradient, summed over replicas,
    is not finite, and doubled after 2,000 finite steps (Micikevicius et al.
    2017, arXiv:1710.03740).

    Args:
        model: takes a batch, returns outputs.
        task: the losses.
        optimizer: built in the strategy's scope.
        strategy: the devices.
        seed: of dropout.
        seed_scope: int32 [3] seed -> context that passes it to dropout;
            entered around the model and `batch_sums` in training.
        batch_tokens: batch -> float32 scalar, its number of tokens.
        use_xla: whether to compile the step: forward and backward pass,
            all-reduce, clipping and update in place as one program, and
            evaluation as another. Several CPUs, which compiled programs
            cannot sum over, compile the forward and backward pass.
        accumulation_steps: micro-batches of a replica, computed one after
            the other.

    Attributes:
        sum_names: names of the sums of a step, in order.
        bad_steps: number of successive steps that were not finite.
    """

    def __init__(
        self,
        model: keras.Model,
        task: Task,
        optimizer: optimization.AdamWeightDecay,
        strategy: tf.distribute.Strategy,
        seed: int,
        seed_scope: Callable,
        batch_tokens: Callable[[dict], tf.Tensor],
        use_xla: bool = False,
        accumulation_steps: int = 1,
    ):
        self.model, self.task = model, task
        self.optimizer = optimizer
        self.strategy = strategy
        self.bad_steps = 0
        self._seed, self._seed_scope = seed % 2**31, seed_scope

        self._batch_tokens = batch_tokens
        self._accumulation_steps = accumulation_steps
        self._variables = self.model.trainable_variables

        self.sum_names = tuple(
            f"{objective}_{what}"
            for objective in task.objectives
            for what in (*task.measures, "weight")
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
            self._skipped = _counted(tf.constant(0, tf.int64))
            self._scaling = None  # scale of the loss, steps since it changed
            if self.model.compute_dtype == "float16":
                self._scaling = _counted([_FIRST_LOSS_SCALE, 0.0])

    def train(self, iterator, num_steps):
        """Runs training steps, each on the next batch.

        Programs have static shapes: if those of the batches vary, the host
        reads each batch, and runs the program of its shape.

        Args:
            iterator: over batches; of several workers, over this one's part
                of each batch.
            num_steps: int32 scalar.

        Returns:
            float32 [num_steps, len(sum_names) + 2]: sums over each step's
            batch, the gradient norm, and the loss scale. They are added up
            outside, so that the number of steps in a call changes no bit.
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
        """A step on a whole batch, on all devices."""
        row = self.strategy.run(self._replica_step, args=(batch,))
        row = self.strategy.experimental_local_results(row)[0]

        # A step that is not finite has updated nothing.
        finite = tf.reduce_all(tf.math.is_finite(row))
        self._skipped.assign_add(tf.cast(~finite, tf.int64))
        if self._scaling is not None:
            self._rescale(finite)
        self.optimizer.iterations.assign_add(1)
        return row

    def state_dict(self) -> dict:
        """State that is not in a checkpoint's tensors, as JSON values."""
        state = {
            "bad_steps": self.bad_steps,
            "skipped": int(self._skipped.numpy()),
        }
        if self._scaling is not None:
            scale, steps = self._scaling.numpy().tolist()
            state |= {"loss_scale": scale.hex(), "loss_scale_steps": int(steps)}
        return state

    def load_state_dict(self, state: dict) -> None:
        """Restores what `state_dict` returned."""
        self.bad_steps = state["bad_steps"]
        # Earlier versions did not count them.
        self._skipped.assign(state.get("skipped", 0))
        if self._scaling is not None and "loss_scale" in state:
            scale = float.fromhex(state["loss_scale"])
            self._scaling.assign([scale, float(state["loss_scale_steps"])])

    @tf.autograph.experimental.do_not_convert  # AutoGraph takes seconds
    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        weights = self._weights(context, batch)
        scale = None

        if self._scaling is not None:
            scale = self._scaling[0]
            weights = {name: x / scale for name, x in weights.items()}

        # The numbers that decide the dropout masks, and this replica's part of
        # the batch that its worker holds.
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        replicas = context.num_replicas_in_sync
        here = replicas // workers.share()[1]
        count = self._accumulation_steps
        step = tf.cast(self.optimizer.iterations.value, tf.int32)

        def micro_batch(i):
            seed = tf.stack([self._seed, step, replica + replicas * i])
            part = _part(batch, replica % here * count + i, here * count)
            return part, weights, seed

        if count == 1:
            gradients, sums = self._gradients(*micro_batch(0))
        elif self.task.compares_rows:
            own = _part(batch, replica % here, here)
            gradients, sums = self._cached_gradients(own, micro_batch)
        else:
            gradients, sums = self._add_up(
                lambda i: self._gradients(*micro_batch(i)),
                (tf.zeros(len(self.sum_names)),),
            )

        gradients, norm, factor = optimization.reduce_and_clip(gradients, scale)
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        row = tf.concat([sums, [norm, 1.0 if scale is None else scale]], 0)

        self.optimizer.update(
            gradients,
            self._variables,
            self.optimizer.learning_rate,
            tf.reduce_all(tf.math.is_finite(row)),
            factor,
            self._skipped,
        )
        return row

    def _weights(self, context, batch):
        """Weights of the whole batch, also where other workers have parts."""
        count = workers.share()[1]
        if count == 1:
            return self.task.batch_weights(batch)

        replicas = context.num_replicas_in_sync
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        part = _part(batch, replica % (replicas // count), replicas // count)
        weights = self.task.batch_weights(part)
        # Those of no example are in each replica's: a constant such as 1e-5.
        none = self.task.batch_weights({k: v[:0] for k, v in batch.items()})

        total = context.all_reduce(
            tf.distribute.ReduceOp.SUM, tf.stack(list(weights.values()))
        )
        return {
            name: total[i] - (replicas - 1.0) * none[name]
            for i, name in enumerate(weights)
        }

    def _add_up(self, compute, others):
        """This replica's gradients and more, added over its micro-batches."""
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
        """Gradients and sums of this replica, of losses that compare rows.

        The outputs are computed twice: for the losses and their gradients,
        keeping nothing, and then for those of the variables, one micro-batch
        after the other (Gao et al. 2021, arXiv:2101.06983). Dropout is a
        function of the seed, so both times it is the same.
        """
        _, weights, first_seed = micro_batch(0)

        def outputs_of(i):
            part, _, seed = micro_batch(i)
            with self._seed_scope(seed):
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

        # Micro-batches, [N, b, ...], are the rows of a replica, [N * b, ...].
        with tf.GradientTape() as tape, self._seed_scope(first_seed):
            tape.watch(cached)
            outputs = {
                name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
                for name, x in cached.items()
            }
            sums = self._sums(own, outputs)
            loss = self._loss(sums, weights)
        upstream = tape.gradient(loss, cached)

        def gradients_of(i):
            with tf.GradientTape() as tape:
                outputs = outputs_of(i)
            pulled = {name: x[i] for name, x in upstream.items()}
            return (self._pulled_back(tape, outputs, pulled),)

        (gradients,) = self._add_up(gradients_of, ())
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    def _gradients(self, part, weights, seed):
        """Gradients and sums of a part of the batch."""
        with tf.GradientTape() as tape:
            with self._seed_scope(seed):
                outputs = self._outputs(part, training=True)
                sums = self._sums(part, outputs)

            loss = self._loss(sums, weights)

        gradients = self._pulled_back(tape, loss, None)
        return gradients, tf.stack([sums[name] for name in self.sum_names])

    def _loss(self, sums, weights):
        return tf.add_n(
            [
                sums[f"{objective}_loss"] / weights[objective]
                for objective in self.task.objectives
            ]
        )

    def _pulled_back(self, tape, target, upstream):
        """Gradients of the variables, dense."""
        variables = [v.value for v in self._variables]
        gradients = tape.gradient(target, variables, upstream)
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _sums(self, part, outputs):
        sums = self.task.batch_sums(part, outputs)
        return {**sums, TOKENS: self._batch_tokens(part)}

    def _rescale(self, finite):
        """Updates the loss scale after a step."""
        scale, steps = tf.unstack(self._scaling)
        steps = tf.where(finite, steps + 1.0, 0.0)
        scale = tf.where(finite, scale, tf.maximum(scale / 2.0, 1.0))
        double = steps >= _STEPS_TO_DOUBLE
        self._scaling.assign(
            tf.where(double, [2.0 * scale, 0.0], [scale, steps])
        )

    @tf.function(autograph=False)
    def evaluate(self, batch):
        """float32 [len(sum_names) + 2]: sums over a whole batch, 0 and 1."""
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
        # With unexpected inputs Keras may silently take wrong ones.
        inputs = {name: part[name] for name in self.model.input}
        return self.model(inputs, training=training)


def _counted(start) -> tf.Variable:
    """A variable of the steps, equal on all replicas."""
    return tf.Variable(
        start,
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def _part(batch, index, count):
    """The part of this index, of `count` equal parts of a batch."""
    if count == 1:
        return batch
    part = {}
    for name, values in batch.items():
        size = values.shape[0] // count
        # XLA slices need a constant size, but no constant start.
        begin = [index * size] + [0] * (values.shape.rank - 1)
        rest = [-1 if n is None else n for n in values.shape[1:]]
        part[name] = tf.slice(values, begin, [size, *rest])
    return part
