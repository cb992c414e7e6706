"""Settings that the fine-tuning scripts share; each field is a flag."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from bert.common import outputs
from bert.common.errors import UserError, raised_by
from bert.common.flags import (
    DATA,
    OUTPUT,
    RARE,
    REQUIRED,
    TRAINING,
    flag,
    group,
)
from bert.data.text.settings import Text
from bert.modeling import openvino_network
from bert.modeling.formats.model_card import CardFlags
from bert.training.settings import Training


@dataclasses.dataclass(frozen=True)
class FineTuning:
    """Shared settings of the fine-tuning scripts."""

    topic = TRAINING

    training: Training = group(Training)
    text: Text = group(
        Text,
        vocab_file={
            "required": False,
            "topic": REQUIRED,
            "help": "Vocabulary, one token per line. Default: vocab.txt beside "
            "--init_checkpoint.",
        },
    )
    do_eval: bool = flag(False, "Evaluate on labelled examples.")
    do_predict: bool = flag(False, "Write predictions.", topic=OUTPUT)
    length_buckets: bool = flag(
        True,
        "Pad batches to one of a few lengths instead of --max_seq_length.",
        resume=True,
        topic=RARE,
    )
    max_seq_length: int = flag(
        128,
        "Maximum number of tokens of a sequence. If not given, a fine-tuned "
        "model keeps its recorded value.",
        at_least=3,
        resume=True,
        topic=DATA,
    )
    predict_batch_size: int = flag(
        8, "Examples of a batch in prediction.", at_least=1, topic=RARE
    )
    freeze_layers: int = flag(
        0,
        "Number of layers to freeze, besides the embeddings. 0 freezes "
        "nothing.",
        at_least=0,
        resume=True,
        topic=RARE,
    )
    num_train_epochs: float = flag(
        3.0, "Number of training epochs.", at_least=0.0, resume=True
    )
    warmup_proportion: float = flag(
        0.1,
        "Fraction of the training steps used for warm-up.",
        at_least=0.0,
        at_most=1.0,
        resume=True,
    )
    layer_decay: float = flag(
        1.0,
        "Factor of a layer's learning rate relative to the layer above it.",
        at_least=0.0,
        at_most=1.0,
        resume=True,
        topic=RARE,
    )
    export_dir: str | None = flag(
        None,
        "Folder for the exported SavedModel.",
        path=True,
        per_worker=True,
        topic=OUTPUT,
    )
    export_precision: str = flag(
        "float32",
        "Precision of the SavedModel's weights and computation. bfloat16 is "
        "faster on devices that support it, but less precise.",
        choices=("float32", "bfloat16"),
        topic=OUTPUT,
    )
    export_openvino: str | None = flag(
        None,
        "Precision of the exported OpenVINO network, which predict.py and "
        "serve.py run without TensorFlow. none exports no network. Default: "
        "float32 if OpenVINO is installed.",
        choices=(*openvino_network.PRECISIONS, openvino_network.NONE),
        topic=OUTPUT,
    )
    card: CardFlags = group(CardFlags)

    @property
    def evaluates(self) -> bool:
        """Whether the run evaluates, during or after training."""
        during_training = (
            self.training.do_train and self.training.eval_steps > 0
        )
        return self.do_eval or during_training

    @property
    def needed_files(self) -> list[str]:
        """Names of the flags whose files the run reads."""
        needed = {
            "train_file": self.training.do_train,
            "eval_file": self.evaluates,
            "predict_file": self.do_predict,
        }
        return [name for name, is_needed in needed.items() if is_needed]

    def mistakes(self, reads_files: bool) -> Iterator[UserError]:
        """Yields the flags that contradict each other.

        Args:
            reads_files: bool. Whether the script has a file to read.
        """
        if not reads_files and not self.export_dir:
            yield UserError(
                "nothing to do",
                fix="pass --do_train, --do_eval, --do_predict or --export_dir",
            )
        yield from openvino_network.mistakes(
            self.export_openvino,
            self.export_dir,
            self.training.do_train or self.evaluates,
        )
        training = self.training
        yield from training.mistakes()
        yield from raised_by(
            training.check_micro_batches, training.train_batch_size
        )

        if not self.layer_decay:
            yield UserError("--layer_decay=0.0", expected="a number above 0")

        # Patience counts evaluations, so it needs them.
        patience = training.early_stopping_patience
        if patience and not training.eval_steps:
            yield UserError(
                f"--early_stopping_patience={patience}",
                expected="--eval_steps, the number of steps between "
                "evaluations",
            )

        # Checked now, not after hours of training.
        if self.export_dir:
            yield from raised_by(
                outputs.check_new_folder,
                self.export_dir,
                "pass another --export_dir",
            )


def files_of(settings: Any) -> dict[str, str | None]:
    """Files that a run reads: flag -> path.

    Args:
        settings: settings of a script, with `finetuning`, `train_file`,
            `eval_file` and `predict_file`.
    """
    names = settings.finetuning.needed_files
    return {name: getattr(settings, name) for name in names}


def unnamed(files: dict[str, str | None]) -> Iterator[UserError]:
    """Yields an error for each missing flag of a file that the run reads.

    Args:
        files: dict. Flag -> path.
    """
    for name, path in files.items():
        if not path:
            yield UserError(f"no --{name}", fix="name the file")
