r"""Students with and without a teacher, and with texts without labels.

    python -m benchmarks.distillation TASK DATA MODEL OUTPUT EPOCHS LAYERS \
        [UNLABELLED]

TASK and DATA are --task_name and --data_dir of run_classifier.py; MODEL is a
folder with a checkpoint, which is fine-tuned to the teacher. The students start
from LAYERS, such as 3,2, of its layers. UNLABELLED is a file for
--unlabelled_file. Three seeds each. Prints a JSON line for each command, with
the scores of its seeds, and one for the time and size of each network;
benchmarks.paired compares two folders of runs.
"""

import csv
import json
import pathlib
import subprocess
import sys

from benchmarks import by_seed
from benchmarks.peers import second_pass
from bert.inference.predictor import Predictor
from bert.runs import sweep

PRECISIONS = ("float32", "int8")
_TEXT, _TEXTS = "a film that is worth seeing twice , in the evening", 500
_FLAGS = (
    "--do_train --do_eval --learning_rate=1e-4 --train_batch_size=32 "
    "--max_seq_length=64 --noreport --notfidf_baseline"
).split()


def train(output: pathlib.Path, words: list[str], seeds: int) -> dict:
    """Runs run_classifier.py.

    Args:
        output: folder of the runs.
        words: flags.
        seeds: number of seeds.

    Returns:
        name of a metric -> its value for each seed.
    """
    command = [sys.executable, "run_classifier.py", *_FLAGS, *words]
    command += [f"--output_dir={output}", f"--num_seeds={seeds}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    if seeds == 1:
        return {x: [y] for x, y in by_seed.results(str(output)).items()}
    with open(output / sweep.TABLE, encoding="utf-8") as file:
        rows = [*csv.DictReader(file, delimiter="\t")]
    rows = [row for row in rows if row["run"].startswith("seed_")]
    names = [name for name in rows[0] if name not in ("run", "chosen")]
    return {name: [float(row[name]) for row in rows] for name in names}


def time_network(export: pathlib.Path) -> dict:
    """Milliseconds for a text of 16 tokens by OpenVINO; megabytes."""
    predictor = Predictor.open(str(export), "openvino")
    text = dict.fromkeys(predictor.task.inputs, _TEXT)

    def run() -> list:
        return [predictor([text]) for _ in range(_TEXTS)]

    run()
    seconds = second_pass.timed(run)["seconds"]
    size = sum(x.stat().st_size for x in export.glob("openvino/*.bin"))
    milliseconds = round(1e3 * seconds / _TEXTS, 3)
    return {"milliseconds": milliseconds, "megabytes": round(size / 1e6, 1)}


def main(
    task: str,
    data: str,
    model: str,
    output: str,
    epochs: str,
    layers: str,
    unlabelled: str | None = None,
) -> None:
    """Trains and measures all models of a task."""
    folder = pathlib.Path(output)
    words = [f"--task_name={task}", f"--data_dir={data}"]
    words += [f"--init_checkpoint={model}", f"--num_train_epochs={epochs}"]
    what = {"what": f"distillation, {task}", "epochs": float(epochs)}
    teacher = folder / "teacher"
    scores = train(teacher, words, 1)
    print(json.dumps(what | {"side": "teacher"} | scores), flush=True)

    learns = [f"--teacher={teacher}"]
    sides = {"labels": [], "teacher": learns}
    if unlabelled:
        sides["teacher, unlabelled"] = [
            *learns,
            f"--unlabelled_file={unlabelled}",
        ]
    networks = {"teacher": teacher}
    for count in layers.split(","):
        for side, more in sides.items():
            path = folder / f"{count}_{side.replace(', ', '_')}"
            flags = [*words, *more, f"--keep_layers={count}"]
            scores = train(path, flags, 3)
            line = what | {"side": side, "layers": int(count)} | scores
            print(json.dumps(line), flush=True)
            networks[f"{count} layers"] = min(path.glob("seed_*"))

    for name, run in networks.items():
        for precision in PRECISIONS:
            export = folder / f"export_{name.replace(' ', '_')}_{precision}"
            command = [sys.executable, "run_classifier.py", *words[:2]]
            command += [f"--init_checkpoint={run}", f"--export_dir={export}"]
            command += [f"--output_dir={export}_run", "--do_eval"]
            command += [f"--export_openvino={precision}", *_FLAGS[-2:]]
            subprocess.run(command, check=True, stdout=sys.stderr)
            line = what | {"network": name, "precision": precision}
            print(json.dumps(line | time_network(export)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
