"""Prints the identities of a command's files, in a process of its own.

    PYTHONHASHSEED=1 python -m tests.helpers.identities folder

An identity that depends on the order of a set changes from process to process:
the next command would not continue the work of a killed one.
"""

import json
import sys

from bert.common import command_line
from bert.data.pretraining import creation
from bert.inference import prediction_job, row_job, teacher_outputs
from bert.inference import settings as predict_settings
from bert.runs import feature_extraction
from bert.tasks.features.settings import Settings, check


class _Stopped(Exception):
    pass


def _job_of(write, *arguments) -> dict:
    """Returns the record and the folder of the job that a function opens."""

    def stop(job, *_):
        raise _Stopped(job)

    row_job.compute = stop
    try:
        write(*arguments, [])
    except _Stopped as stopped:
        (job,) = stopped.args
    return {"record": job.record, "folder": job.folder}


def _settings(settings_class, **named):
    words = [f"--{name}={value}" for name, value in named.items()]
    return command_line.parse(["", *words], settings_class, "")


def main(folder: str) -> None:
    """Prints JSON: name -> identity.

    Args:
        folder: with the files of `classifier_files.write_networks`.
    """
    model, vocabulary = f"{folder}/model", f"{folder}/vocab.txt"
    extraction = _settings(
        Settings,
        input_file=vocabulary,
        output_file=f"{folder}/e.npy",
        init_checkpoint=model,
        vocab_file=vocabulary,
        layers="-1",
        max_seq_length=13,
        pooling="mean",
        do_lower_case=True,
    )
    predicting = _settings(
        predict_settings.Settings,
        model=model,
        input_file=vocabulary,
        output_file=f"{folder}/p.jsonl",
    )
    records = _settings(
        creation.Settings,
        input_file=vocabulary,
        output_file=f"{folder}/0.tfrecord,{folder}/1.tfrecord",
        vocab_file=vocabulary,
        do_lower_case=True,
    )
    found = {
        "embeddings": _job_of(feature_extraction.write, check(extraction)),
        "predictions": _job_of(prediction_job.write, predicting),
        "records": creation.open_job(records).folder,
        "teacher": teacher_outputs.digest(model),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
