"""Fixtures of several tests of the scripts."""

import pytest

import create_pretraining_data
import doctor

S, P = 31, 5


@pytest.fixture
def create(folder, run_script):
    """Runs the script on the folder's corpus into a folder of its own."""

    def run(name, *words, code=0, shards=1, options=(), **named):
        files = [folder / name / f"{i}.tfrecord" for i in range(shards)]
        named = {
            "input_file": folder / "corpus.txt",
            "vocab_file": folder / "vocab.txt",
            "output_file": ",".join(map(str, files)),
            "max_seq_length": S,
            "max_predictions_per_seq": P,
            "dupe_factor": 3,
            "num_processes": 1,
            **named,
        }
        words += tuple(f"--{key}={value}" for key, value in named.items())
        found, out, err = run_script(create_pretraining_data, *words, *options)
        assert found == code, err
        return files, out, err

    return run


@pytest.fixture
def diagnose(run_script):
    """Runs doctor; returns (exit code, level -> messages)."""

    def run(*words, **named):
        code, out, err = run_script(doctor, *words, **named)
        lines = out.splitlines()
        found = {"wrong": [], "suspicious": [], "fine": []}
        for line in lines[:-1]:
            level, _, message = line.partition(": ")
            found[level].append(message)
        counts = [f"{len(found[level])} {level}" for level in found]
        assert lines[-1] == ", ".join(counts), err
        return code, found

    return run
