"""Settings of export_hub.py. This module does not import TensorFlow."""

import dataclasses

from bert.common import outputs
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, flag
from bert.data.text import vocabulary_checks
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder

PREPROCESSING, WITH_MLM = "preprocessing", "model_with_mlm"
PRECISIONS = ("float32", "float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings, ModelFiles):
    """Settings of export_hub.py."""

    export_type: str = flag(
        "model",
        "Encoder, encoder with masked-LM head, or preprocessor.",
        choices=("model", WITH_MLM, PREPROCESSING),
    )
    precision: str = flag(
        "float32",
        "Precision of weights and computation. Models in float16 or bfloat16 "
        "are only for serving.",
        choices=PRECISIONS,
    )
    model_checkpoint_path: str | None = flag(
        None, "Prefix, folder or name of a checkpoint.", path=True
    )
    export_path: str = flag(
        None,
        "Folder to write, new or empty.",
        required=True,
        path=True,
        parse=lambda path: outputs.check_new_folder(
            path, "pass another --export_path"
        ),
    )
    tokenize_with_offsets: bool = flag(
        False, "Add tokenize_with_offsets to the preprocessor."
    )
    copy_pooler_dense_to_encoder: bool = flag(
        False, "Accepted; changes nothing."
    )
    experimental_disable_assert_in_preprocessing: bool = flag(
        False, "Accepted; changes nothing."
    )
    default_seq_length: int = flag(
        128, "Sequence length of a preprocessor, in tokens.", at_least=3
    )
    static_seq_length: int = flag(
        0, "Sequence length of an encoder, in tokens; 0: any.", at_least=0
    )

    @property
    def is_preprocessor(self) -> bool:
        """Whether a preprocessor is exported instead of an encoder."""
        return self.export_type == PREPROCESSING


def check(settings: Settings) -> ModelFolder:
    """Checks the flags and the files.

    Args:
        settings: Settings. Settings of the script.

    Returns:
        ModelFolder. The model; for a preprocessor its path may be "".

    Raises:
        UserError: Flags contradict each other, or a file is missing.
    """
    checkpoint = settings.model_checkpoint_path
    if settings.is_preprocessor:
        if settings.precision != "float32" or settings.static_seq_length:
            raise UserError(
                "--precision and --static_seq_length apply to models only",
                fix="omit them",
            )

        # A checkpoint is enough, if the vocabulary is beside it.
        if not (settings.vocab_file or checkpoint):
            raise UserError("no --vocab_file", fix="pass the vocabulary")
    elif not checkpoint:
        raise UserError(
            "no --model_checkpoint_path", fix="pass the checkpoint's prefix"
        )

    model = ModelFolder.open(checkpoint, settings)
    if settings.is_preprocessor:
        vocabulary_checks.check_exportable(model.tokenizer)
        model.check_casing(model.tokenizer)
        return model

    model.check()
    model.config.check_length(
        settings.static_seq_length, "static_seq_length", model.config_file
    )
    return model
