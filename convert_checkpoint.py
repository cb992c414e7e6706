r"""Converts BERT weights from one format to another, including all heads.

    python convert_checkpoint.py --input=minilm --to=google \
        --output=minilm_google

The outputs of both models are compared before the files are renamed to their
final names. Graphs and pickles are never loaded.
"""

import dataclasses
import os
import sys

from bert.common import command_line, storage
from bert.common import main as common_main
from bert.common.progress import log
from bert.modeling.formats import checkpoint_files, model_card
from bert.modeling.formats.conversion_settings import Settings
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.ner import entities


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    folder = ModelFolder.open(settings.input, settings)

    # Read the run's records before any file is written.
    recorded = checkpoint_files.recorded_settings(folder.path)
    report = checkpoint_files.beside(folder.path, model_card.REPORT)
    step = checkpoint_files.step_of(folder.resolve())
    scores = model_card.read_scores(os.path.dirname(report), step)

    from bert.modeling.formats import conversion, extend_embeddings
    from bert.training import distribution

    model = folder.read()
    if model.task_json and model.task_json["kind"] is None:
        kind = entities.kind_of(model.task_json["labels"])
        model = dataclasses.replace(
            model, task_json=model.task_json | {"kind": kind}
        )

    if settings.extend_vocab:
        model = extend_embeddings.add_words(model, settings.extend_vocab)

    if model.skipped:
        log(f"skipped variables: {', '.join(model.skipped)}")
    if not any(name.startswith("bert/pooler/") for name in model.values):
        log("warning: the input has no pooler; fine-tuning adds a new one")

    one = distribution.make_strategy("one_device")
    log(distribution.describe(one, "float32"))
    difference = conversion.convert(model, settings.to, settings.output)
    log(f"largest difference of the outputs of both models: {difference:.1e}")

    if settings.to == "huggingface":
        computes_embeddings = bool(model.pooling_config)
        model_card.write(
            settings.output,
            os.path.basename(storage.absolute(settings.output)),
            "sentence-transformers" if computes_embeddings else "transformers",
            model_card.task_of(model.values, computes_embeddings),
            settings,
            recorded.get("init_checkpoint") or settings.input,
            scores,
        )

    count = sum(value.size for value in model.values.values())
    heads = ", ".join(conversion.parts_of(model.values, settings.to))
    print(
        f"wrote {len(model.values)} variables ({count:,} numbers; {heads}) to "
        f"{settings.output}"
    )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
