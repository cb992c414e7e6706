"""Settings that the fine-tuning scripts share; each field is a flag."""

import dataclasses

from bert.common.flags import (
    DATA,
    OUTPUT,
    RARE,
    REQUIRED,
    TRAINING,
    flag,
    group,
)
from bert.data.text.settings import CASING_OF_MODEL, Text
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
            "help": "Vocabulary, one token per line; default: the one beside "
            "--init_checkpoint.",
        },
        **CASING_OF_MODEL,
    )
    do_eval: bool = flag(False, "Evaluate on labelled examples.")
    do_predict: bool = flag(False, "Write predictions.", topic=OUTPUT)
    length_buckets: bool = flag(
        True,
        "Pad each batch to one of a few lengths, not to --max_seq_length.",
        resume=True,
        topic=RARE,
    )
    max_seq_length: int = flag(
        128,
        "Maximum number of tokens of a sequence; if not given, a fine-tuned "
        "model keeps its own.",
        at_least=3,
        resume=True,
        topic=DATA,
    )
    predict_batch_size: int = flag(
        8, "Examples of a batch in prediction.", at_least=1, topic=RARE
    )
    freeze_layers: int = flag(
        0,
        "Number of layers to freeze, from the embeddings up; 0: none.",
        at_least=0,
        resume=True,
        topic=RARE,
    )
    num_train_epochs: float = flag(
        3.0, "Number of training epochs.", at_least=0.0, resume=True
    )
    warmup_proportion: float = flag(
        0.1,
        "Fraction of the steps used for warm-up.",
        at_least=0.0,
        resume=True,
    )
    layer_decay: float = flag(
        1.0,
        "Factor of the learning rate from each layer to the layer below.",
        at_least=0.0,
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

    @property
    def evaluates(self) -> bool:
        """Whether labelled examples are evaluated, after training or in it."""
        during_training = (
            self.training.do_train and self.training.eval_steps > 0
        )
        return self.do_eval or during_training
