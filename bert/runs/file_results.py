"""Results of the examples of files, with the weights of a trainer."""

import functools
from collections.abc import Iterator

from bert.common.progress import Progress, log
from bert.data.sequences import Encoded, TaskResult
from bert.data.tables import InputFile
from bert.inference.predictor import Predictor
from bert.modeling import checkpoints
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.task import Task
from bert.training.trainer import Trainer


class FileResults:
    """Computes results of files with the current weights of a trainer.

    Args:
        task: Task. Task of the run. Post-processing changes no result.
        trainer: Trainer. Trainer of the run.
        settings: FineTuning. Batch sizes of evaluation and prediction.
    """

    def __init__(self, task: Task, trainer: Trainer, settings: FineTuning):
        self._task, self._trainer = task, trainer
        self._settings = settings

        # Cached for repeated validations.
        self.encoded = functools.cache(self._encode_whole)

    def evaluated(
        self, file: InputFile, engine: OpenVINOEngine | None = None
    ) -> list[TaskResult]:
        """Returns the results of the examples of an evaluation file.

        Args:
            file: InputFile. The file.
            engine: OpenVINOEngine or None. An exported network. Default: None,
                the network of the trainer.
        """
        encoded = self.encoded(file)
        progress = Progress("evaluated", len(encoded), "examples")
        predictor = self._predictor(self._settings.eval_batch_size, engine)
        computed = predictor.compute(encoded, progress.update)
        return [result for _, result in computed]

    def predicted(
        self, file: InputFile
    ) -> tuple[list[Encoded], list[TaskResult]]:
        """Returns the examples of a file without their sequences, and results.

        The file may be larger than the memory for its sequences.

        Args:
            file: InputFile. The file.
        """
        count, examples = self._encode(file)
        progress = Progress("predicted", count, "examples")
        predictor = self._predictor(self._settings.predict_batch_size)
        encoded, results = [], []
        for x, result in predictor.compute(examples, progress.update):
            encoded.append(x._replace(sequences=[]))
            results.append(result)
        return encoded, results

    @functools.cached_property
    def _engine(self) -> KerasEngine:
        """The network of the trainer; a run that only trains builds none."""
        network, head = self._trainer.train_step.model, None
        if self._task.head:
            head = network.get_layer(self._task.head)
        strategy = self._trainer.train_step.strategy
        encoder = checkpoints.encoder_of(network)
        return KerasEngine(encoder, head, strategy=strategy)

    def _predictor(
        self, batch_size: int, engine: OpenVINOEngine | None = None
    ) -> Predictor:
        """Returns a predictor with the current weights."""
        tokens = batch_size * self._settings.max_seq_length
        return Predictor(self._task, engine or self._engine, tokens)

    def _encode(self, file: InputFile) -> tuple[int, Iterator[Encoded]]:
        """Encodes the examples of a file lazily; logs long texts at the end.

        Returns:
            the number of examples, and the examples.
        """
        task, lengths = self._task, list[int]()
        examples = task.inputs_of(file.rows)

        def encoded() -> Iterator[Encoded]:
            for x in task.encode_all(examples):
                lengths.append(x.num_tokens)
                yield x
            log_long_texts(
                file.path, lengths, task.max_length, task.reads_windows
            )

        return len(examples), encoded()

    def _encode_whole(self, file: InputFile) -> list[Encoded]:
        """Encodes the examples of a file."""
        count, examples = self._encode(file)
        progress, encoded = Progress("tokenized", count, "examples"), []
        for x in examples:
            encoded.append(x)
            progress.update(len(encoded))
        return encoded


def log_long_texts(
    path: str, lengths: list[int], limit: int, reads_windows: bool = False
) -> None:
    """Logs the texts of a file that are longer than a sequence.

    Args:
        path: str. The file.
        lengths: list of int. Number of tokens of each example.
        limit: int. Longest sequence in tokens.
        reads_windows: bool. Whether longer texts are read in windows instead
            of truncated. Default: False.
    """
    count = sum(tokens > limit for tokens in lengths)
    if count:
        level, done = "warning", "were truncated"
        if reads_windows:
            level, done = "note", "are read in windows"
        log(
            f"{level}: {path}: {count:,} of {len(lengths):,} texts are longer "
            f"than {limit} tokens and {done} (longest: {max(lengths):,}); see "
            "--max_seq_length"
        )
