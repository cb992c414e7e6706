r"""The first result on a small table, beside what a user would try next.

    python -m benchmarks.first_result FOLDER MODEL TABLE [TABLE ...] \
        [--sizes=200,1000,5000] [--seeds=3] [--sides=ours,words] \
        [--before=CHECKOUT] [--peer=PYTHON] [--setfit=PYTHON]

A TABLE is a folder of GLUE, such as glue/SST-2, or has train.csv and dev.csv
with the columns text, text_b for pairs, and label, or score for numbers. MODEL
is a folder of weights in the layout of Hugging Face. Each seed draws the rows
to train on; at most 1,000 rows of the dev file are the same for all, without
those of a label that has no training row. The sides:

    ours, before  run_classifier.py with no flag of training; in CHECKOUT
    words         TF-IDF and logistic regression, for numbers ridge regression
    pooler, mean  the same on outputs of the frozen encoder: what our head
                  reads, or embeddings; of a pair [a, b, |a - b|, a b]
    trainer       the Trainer of transformers with its defaults, in the
                  environment of PYTHON
    run_glue      the same with the settings in run_glue's README
    setfit        SetFit, for classes of single texts, 20 pairs per row

Scores are accuracy and the share of the most frequent prediction, for numbers
Pearson's correlation. Each result is a line in FOLDER/results.jsonl, and is not
computed again; the last lines are a table.
"""

import collections
import csv
import dataclasses
import json
import pathlib
import random
import statistics
import sys
import time
from collections.abc import Callable

import keras
import numpy as np
from sklearn import linear_model, model_selection, pipeline, preprocessing

import bert
from benchmarks import by_seed, commands, encoded, transformers_trainer
from bert.data import feature_names, postprocessing
from bert.data.labels import REGRESSION
from bert.inference.predictor import Predictor
from bert.modeling.engines.keras_engine import KerasEngine
from bert.models import loading
from bert.tasks.classification import scores, tfidf
from bert.tasks.classification.files import TextExample, labels_of
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.metrics import ACCURACY
from bert.tasks.task import DEV, TRAIN

MAX_SEQ_LENGTH, HELD_OUT = 128, 1000
PEARSON = "pearson"
ROOT = pathlib.Path(__file__).parents[1]
SETFIT = ROOT / "benchmarks" / "peers" / "setfit_training.py"
TRAINER = {  # name -> settings
    "trainer": {"batch_size": 8, "learning_rate": 5e-5},
    "run_glue": {"batch_size": 32, "learning_rate": 2e-5},
}
_PENALTIES = {"logisticregression__C": [1e-3, 1e-2, 0.1, 1.0]}
_ALPHAS = np.logspace(0, 5, 11)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Rows of a table: train.csv and dev.csv in a folder.

    Attributes:
        folder: path of the files, and of what is trained.
        model: folder of the weights.
        seed: seed of the rows and of training.
        flags: flags of run_classifier.py that describe the table.
    """

    folder: pathlib.Path
    model: str
    seed: int
    flags: dict

    def read(self) -> tuple:
        """Returns the task, the training rows, and the held-out rows."""
        return _read(self.model, **self.flags)


def _read(model: str, **flags) -> tuple:
    """Reads a task with its training rows and its held-out rows."""
    task, files = encoded.read(model, **flags)
    return task, files[TRAIN][0].rows, files[DEV][0].rows


def source(table: str, model: str) -> tuple:
    """Reads a folder of GLUE, or of train.csv and dev.csv."""
    path = pathlib.Path(table)
    name = path.name.lower().replace("-", "")
    if name in GLUE_TASKS:
        flags = {"task_name": name, "max_seq_length": MAX_SEQ_LENGTH}
        return _read(model, data_dir=table, **flags)
    with (path / "train.csv").open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    return _read(model, **_flags(path, header))


def _flags(folder: pathlib.Path, header: list[str]) -> dict:
    """Flags of run_classifier.py for the tables in a folder."""
    return {
        "task_name": "csv",
        "train_file": str(folder / "train.csv"),
        "eval_file": str(folder / "dev.csv"),
        "text_column": "text",
        "label_column": "score" if "score" in header else "label",
        "max_seq_length": MAX_SEQ_LENGTH,
        **({"text_b_column": "text_b"} if "text_b" in header else {}),
        **({"regression": True} if "score" in header else {}),
    }


def draw(found: tuple, folder: pathlib.Path, model: str, size: int, seed: int):
    """Writes the rows of a sample; None if the table has too few."""
    task, train, held_out = found
    if len(train) < size:
        return None
    is_number = task.labels.kind == REGRESSION
    header = ["text", "text_b", "score" if is_number else "label"]
    if not any(row.text_b for row in train):
        del header[1]
    parts = {
        "train": random.Random(seed).sample(train, size),
        "dev": random.Random(0).sample(held_out, min(HELD_OUT, len(held_out))),
    }

    def fields(row: TextExample) -> dict:
        label = row.label if is_number else task.labels.names[row.label]
        return {**row._asdict(), "label": label, "score": label}

    # A label that is not in the sample cannot be learned from it.
    known = {row.label for row in parts["train"]}
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in parts.items():
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, header, extrasaction="ignore")
            table.writeheader()
            table.writerows(
                fields(row) for row in rows if is_number or row.label in known
            )
    return Sample(folder, model, seed, _flags(folder, header))


def _score(task, rows: list, predicted: np.ndarray) -> dict[str, float]:
    """Scores predictions: a value for each row, for classes an id."""
    if task.labels.kind == REGRESSION:
        return scores.compute((PEARSON,), labels_of(rows), predicted)
    most = collections.Counter(predicted.tolist()).most_common(1)[0][1]
    found = scores.compute((ACCURACY,), labels_of(rows), predicted)
    return {**found, "most_frequent": most / len(rows)}


def ours(
    sample: Sample, checkout: str = str(ROOT), name: str = "ours"
) -> dict[str, float]:
    """Runs the command of the README, then predicts with its result."""
    output = str(sample.folder / name)
    flags = {
        **sample.flags,
        **encoded.model_flags(sample.model),
        "output_dir": output,
        "random_seed": sample.seed,
    }
    script = str(pathlib.Path(checkout) / "run_classifier.py")
    seconds, *_ = commands.run(
        [
            *(sys.executable, script, "--do_train", "--do_eval"),
            *(f"--{name}={value}" for name, value in flags.items()),
        ]
    )
    found = by_seed.results(output)
    values = {
        metric: found[f"eval_{metric}"]
        for metric in (ACCURACY, PEARSON)
        if f"eval_{metric}" in found
    }
    if ACCURACY in values:
        model = bert.TextClassifier(output)
        _, _, rows = sample.read()
        texts: list | tuple = [row.text for row in rows]
        if "text_b_column" in sample.flags:
            texts = texts, [row.text_b for row in rows]
        counts = collections.Counter(model.predict(texts, verbose=0)["label"])
        values["most_frequent"] = counts.most_common(1)[0][1] / len(rows)
    return {"seconds": seconds, **values}


def words(sample: Sample) -> dict[str, float]:
    """The linear model of the words that run_classifier.py shows."""
    task, train, rows = sample.read()
    start = time.perf_counter()
    found = tfidf.predictions(train, rows, task.labels.kind, task.tokenizer)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **_score(task, rows, found)}


def pooler(sample: Sample) -> dict[str, float]:
    """A linear model of what our head reads."""

    def features(task, rows: list) -> np.ndarray:
        encoder, _ = loading.load_pair(sample.model)
        engine = KerasEngine(encoder, keras.layers.Identity(name=task.head))
        computed = Predictor(task, engine).compute(
            task.encode(task.inputs_of(rows))
        )
        return np.stack([values for _, values in computed])

    return _linear(sample, features)


def mean(sample: Sample) -> dict[str, float]:
    """A linear model of embeddings, of means of tokens."""

    def features(_, rows: list) -> np.ndarray:
        texts = [row.text for row in rows]
        a = bert.embed(texts, sample.model, pooling="mean")
        if "text_b_column" not in sample.flags:
            return a
        texts = [row.text_b for row in rows]
        b = bert.embed(texts, sample.model, pooling="mean")
        return np.concatenate([a, b, abs(a - b), a * b], -1)

    return _linear(sample, features)


def _linear(sample: Sample, features: Callable) -> dict[str, float]:
    """Fits a linear model, its penalty by five-fold cross validation."""
    task, train, rows = sample.read()
    start = time.perf_counter()
    if task.labels.kind == REGRESSION:
        model = linear_model.RidgeCV(_ALPHAS)
    else:
        model = model_selection.GridSearchCV(
            pipeline.make_pipeline(
                preprocessing.StandardScaler(),
                linear_model.LogisticRegression(max_iter=500),
            ),
            _PENALTIES,
            cv=model_selection.KFold(5, shuffle=True, random_state=0),
        )
    model.fit(features(task, train), labels_of(train))
    found = model.predict(features(task, rows))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **_score(task, rows, found)}


def trainer(sample: Sample, python: str, settings: dict) -> dict[str, float]:
    """Runs the Trainer of transformers on the tokens of our examples."""
    task, train, rows = sample.read()
    times, logits = transformers_trainer.logits(
        (python, sample.model),
        list(task.records(train)),
        list(task.records(rows)),
        {feature_names.LABEL_IDS: "labels"},
        model_class="BertForSequenceClassification",
        num_labels=task.num_outputs,
        epochs=3,
        warmup_proportion=0.0,
        weight_decay=0.0,
        seed=sample.seed,
        **settings,
    )
    found = postprocessing.predictions(logits, task.labels.kind)
    seconds = times["command_seconds"]
    return {"seconds": seconds, **_score(task, rows, found)}


def setfit(sample: Sample, python: str) -> dict[str, float]:
    """Runs SetFit on the tables."""
    task, _, rows = sample.read()
    if len(sample.flags.keys() & {"text_b_column", "regression"}):
        return {}
    output = sample.folder / "setfit.json"
    seconds, *_ = commands.run(
        [python, str(SETFIT), sample.model, str(sample.folder), str(output)]
        + [str(sample.seed)]
    )
    names = {name: number for number, name in enumerate(task.labels.names)}
    found = np.array([names[x] for x in json.loads(output.read_text())])
    return {"seconds": seconds, **_score(task, rows, found)}


def sides_of(options: dict[str, str]) -> dict[str, Callable]:
    """Name -> function of a sample, for the sides that options ask for."""
    sides: dict[str, Callable] = {"ours": ours}
    if checkout := options.get("before"):
        sides["before"] = lambda sample: ours(sample, checkout, "before")
    sides |= {"words": words, "pooler": pooler, "mean": mean}
    if python := options.get("peer"):
        for name, settings in TRAINER.items():
            sides[name] = lambda sample, settings=settings: trainer(
                sample, python, settings
            )
    if with_setfit := options.get("setfit"):
        sides["setfit"] = lambda sample: setfit(sample, with_setfit)
    wanted = options.get("sides", ",".join(sides)).split(",")
    return {name: sides[name] for name in wanted}


def measure(
    output: str, model: str, tables: list[str], **options: str
) -> list[dict]:
    """Measures all sides; prints and returns the results, a dict each.

    Args:
        output: folder of the samples, the runs and results.jsonl.
        model: folder of the weights.
        tables: folders of tables.
        options: see the module.
    """
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    results = [json.loads(line) for line in lines]
    keys = ("table", "rows", "seed", "side")
    known = {tuple(result[key] for key in keys) for result in results}
    for table in tables:
        found, name = source(table, model), pathlib.Path(table).name
        for size in map(int, options.get("sizes", "200,1000,5000").split(",")):
            for seed in by_seed.numbers(options.get("seeds", "3")):
                own = folder / f"{name}_{size}_{seed}"
                sample = draw(found, own, model, size, seed)
                if sample is None:
                    continue
                for side, run in sides_of(options).items():
                    key = (name, size, seed, side)
                    if key in known:
                        continue
                    scored = {k: round(v, 4) for k, v in run(sample).items()}
                    result = dict(zip(keys, key, strict=True)) | scored
                    line = json.dumps(result)
                    with path.open("a") as file:
                        file.write(f"{line}\n")
                    print(line, flush=True)
                    results.append(result)
    return results


def summary(results: list[dict]) -> str:
    """A table: mean and deviation of each side, and its median seconds."""
    sides = list(dict.fromkeys(result["side"] for result in results))
    groups = collections.defaultdict(list)
    for result in results:
        groups[result["table"], result["rows"], result["side"]].append(result)
    lines = [
        "| table, rows | " + " | ".join(sides) + " |",
        "|---|" + "---|" * len(sides),
    ]
    for table, rows in dict.fromkeys(key[:2] for key in groups):
        cells = [f"{table}, {rows:,}"]
        for side in sides:
            values = [
                result.get(ACCURACY, result.get(PEARSON))
                for result in groups[table, rows, side]
            ]
            values = [value for value in values if value is not None]
            if not values:
                cells.append("")
                continue
            seconds = statistics.median(
                result["seconds"] for result in groups[table, rows, side]
            )
            cells.append(
                f"{statistics.mean(values):.3f} ± "
                f"{statistics.pstdev(values):.3f}, {seconds:.0f} s"
            )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(*words: str) -> None:
    """Measures what the command line names, and prints the table."""
    flags = [word for word in words if word.startswith("--")]
    output, model, *tables = [word for word in words if word not in flags]
    options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    print(summary(measure(output, model, tables, **options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
