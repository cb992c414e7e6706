"""Several runs of run_classifier.py that differ in their seed."""

import dataclasses
import os
import statistics

from bert.common import flags
from bert.common.progress import say
from bert.modeling import task_models
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import finetuning, training_data
from bert.tasks.classification.inputs import TRAIN, Data
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.training.task import Task


def work(
    settings: Settings,
    model: ModelFolder,
    folder: RunFolder,
    data: Data,
    task: Task,
) -> None:
    """Trains and evaluates with each seed of --num_seeds.

    Each run has its own folder in --output_dir. The results are
    means, and the best run is used for prediction and export.

    Args:
        settings: the settings of the script.
        model: the initial weights.
        folder: the folder of all runs.
        data: the input files.
        task: of the first seed; its examples are those of all.
    """
    shared, results, steps = settings.finetuning, [], []

    folder.write_inputs()
    checkpoint_files.write_task(
        folder.path,
        task.labels | {"max_seq_length": shared.max_seq_length},
    )

    def task_of(seed_settings: Settings):
        seed = seed_settings.finetuning.training.random_seed
        return dataclasses.replace(
            task,
            build=lambda: task_models.build_classifier(
                model.config, data.labels.size, seed
            ),
        )

    def folder_of(seed_settings: Settings) -> RunFolder:
        path = seed_settings.finetuning.training.output_dir
        below = folder.below(os.path.basename(path))
        below.check()

        # The folder of a seed may be of an earlier command with other data.
        for part in data.of(TRAIN):
            training_data.identify(below.shared, part.path)
        return below

    # Train and evaluate with each seed.
    all_settings = settings_of_seeds(settings)
    for seed_settings in all_settings:
        run, scores = finetuning.work(
            flags.replace(seed_settings, do_predict=False, export_dir=None),
            model,
            folder_of(seed_settings),
            task_of(seed_settings),
        )
        results.append(scores)
        steps.append(run.weights_step)

    # Write the means; each run has written its own results.
    paths = folder.write_results(steps[-1], summarize(results))
    finetuning.print_written(paths)

    # Predict and export with the best seed.
    if shared.do_predict or shared.export_dir:
        sign = -1 if task.is_loss else 1
        values = [sign * scores[task.metric] for scores in results]
        best = values.index(max(values))
        best_settings = all_settings[best]
        say(
            "predictions and export use "
            f"{best_settings.finetuning.training.output_dir}, step "
            f"{steps[best]}"
        )
        finetuning.work(
            flags.replace(best_settings, do_train=False, do_eval=False),
            model,
            folder_of(best_settings),
            task_of(best_settings),
            results[best],
        )


def settings_of_seeds(settings: Settings) -> list[Settings]:
    """Settings of each run of --num_seeds, with its seed and folder."""
    training = settings.finetuning.training
    first = training.random_seed
    return [
        flags.replace(
            settings,
            random_seed=seed,
            output_dir=os.path.join(training.output_dir, f"seed_{seed}"),
        )
        for seed in range(first, first + settings.num_seeds)
    ]


def summarize(results: list[dict[str, float]]) -> dict[str, float]:
    """Means over seeds, and the standard deviations of scores."""
    summary = {}
    for name in results[0]:
        found = [result[name] for result in results]
        summary[name] = statistics.fmean(found)
        if len(found) > 1 and name.startswith("eval_"):
            summary[f"{name}_std"] = statistics.stdev(found)
    return summary
