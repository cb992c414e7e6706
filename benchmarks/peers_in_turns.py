r"""Training steps or inference of all systems, in turns, A B C A B C.

    python -m benchmarks.peers_in_turns train CONFIG.json B S P [SIDE ...]
    python -m benchmarks.peers_in_turns infer CONFIG.json B S,S,... [SIDE ...]
    python -m benchmarks.peers_in_turns alone CONFIG.json B S P [SIDE ...]

A side is SYSTEM/PRECISION/MODE: `ours`, `huggingface`, `keras_hub` or
`model_garden`; `float32` or `bfloat16`; a mode of the script of the system,
own_step.py or peers/SYSTEM_step.py. The suffix `+onednn` of a mode sets
TF_ENABLE_ONEDNN_OPTS=1, which is TensorFlow's default on some machines only.
The default sides are ours and the fastest known modes of each peer.

All sides have the same batches, sizes, masked positions, dropout, clipping and
AdamW. Each is a process that holds its network and waits for its turn; the
first turn, which compiles, is not counted. With `alone` the sides train one
after the other, each in empty memory. RUNS in the environment is the number of
turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SIDES = (
    "ours/float32/fused",
    "keras_hub/float32/graph",
    "keras_hub/float32/graph+onednn",
    "model_garden/float32/graph",
    "model_garden/float32/graph+onednn",
    "huggingface/float32/eager",
    "huggingface/float32/compiled",
)
WARM_UP = 1


def command_of(system: str) -> list[str]:
    """Returns the command of a system."""
    if system == "ours":
        return [sys.executable, "-m", "benchmarks.own_step"]
    python = f"{ROOT}/.venv-peers/{system}/bin/python"
    return [python, f"{HERE}/peers/{system}_step.py"]


class SystemProcess:
    """A system in its own process.

    Args:
        name: SYSTEM/PRECISION/MODE.
        task: `train` or `infer`.
        config: path of the network's sizes.
        sizes: B, S and P; empty for inference.
    """

    def __init__(self, name: str, task: str, config: str, sizes: list[int]):
        self.name = name
        self.failed = None
        system, precision, mode = name.split("/")
        mode, *extra = mode.split("+")
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
        environment.pop("TF_ENABLE_ONEDNN_OPTS", None)
        if extra == ["onednn"]:
            environment["TF_ENABLE_ONEDNN_OPTS"] = "1"
        # Open as long as the process runs.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                *command_of(system),
                *(task, config, precision, mode, *map(str, sizes)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        # Waits, so that the processes start one after the other.
        self.versions = self._answer()

    def run(self, *arguments: int) -> dict | None:
        """Runs a turn: seconds, value and peak memory; None if it failed."""
        if self.failed is None:
            self._process.stdin.write(json.dumps(arguments) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _answer(self) -> dict | None:
        if self.failed is not None:
            return None
        for line in self._process.stdout:
            if line.startswith("{"):  # not the output of a library
                return json.loads(line)
        self._errors.seek(0)
        self.failed = self._errors.read().strip().splitlines()[-1:]
        return None


def take_turns(
    sides: list[SystemProcess], runs: int, arguments: tuple[int, ...] = ()
) -> dict[str, list[dict]]:
    """Runs each side `runs` times in turns, after a warm-up."""
    found = {side.name: [] for side in sides}
    for turn in range(WARM_UP + runs):
        for side in sides:
            answer = side.run(*arguments)
            if turn >= WARM_UP and answer:
                found[side.name].append(answer)
    return found


def compare(
    sides: list[SystemProcess], found: dict[str, list[dict]]
) -> list[dict]:
    """Summarizes each side: time, and ratio to that of the first side."""
    first = found[sides[0].name]
    lines = []
    for side in sides:
        turns = found[side.name]
        if not turns:
            lines.append({"side": side.name, "failed": side.failed})
            continue
        seconds = [turn["seconds"] for turn in turns]
        ratios = sorted(
            b["seconds"] / a["seconds"] for a, b in zip(first, turns)
        ) or [float("nan")]
        lines.append(
            {
                "side": side.name,
                "seconds": round(statistics.median(seconds), 4),
                "min_max": [round(f(seconds), 4) for f in (min, max)],
                "ratio": round(statistics.median(ratios), 2),
                "ratio_min_max": [round(ratios[0], 2), round(ratios[-1], 2)],
                "peak_megabytes": round(turns[-1]["peak_megabytes"]),
                "value": round(turns[-1]["value"], 4),
                **side.versions,
            }
        )
    return lines


def measure(
    task: str,
    config: str,
    batch_size: int,
    lengths: list[int],
    masks: int = 0,
    names: tuple[str, ...] = SIDES,
    runs: int = 5,
) -> list[dict]:
    """Times all sides.

    Args:
        task: `train`, `infer` or `alone`.
        config: path of the network's sizes.
        batch_size: B.
        lengths: S of each comparison; a single one in training.
        masks: P, in training.
        names: sides; ratios are relative to the first.
        runs: number of counted turns.

    Returns:
        a dict for each side and length.
    """
    what = {
        "what": task,
        "config": os.path.basename(config),
        "B": batch_size,
        "P": masks,
    }
    sizes, sides = [], []
    if task != "infer":
        sizes = [batch_size, lengths[0], masks]

    def start(name):
        kind = "infer" if task == "infer" else "train"
        sides.append(SystemProcess(name, kind, config, sizes))
        return sides[-1:]

    lines = []
    try:
        if task == "alone":
            found = {}
            for name in names:
                found |= take_turns(start(name), runs)
                sides[-1].end()
            return [
                {**what, "S": lengths[0], **x} for x in compare(sides, found)
            ]
        for name in names:
            start(name)
        for length in lengths:
            arguments = () if sizes else (batch_size, length)
            found = take_turns(sides, runs, arguments)
            lines += [{**what, "S": length, **x} for x in compare(sides, found)]
    finally:
        for side in sides:
            side.end()
    return lines


def main() -> None:
    """Prints a JSON line for each side and length."""
    task, config, batch_size, lengths, *rest = sys.argv[1:]
    masks = int(rest.pop(0)) if task != "infer" else 0
    runs = int(os.environ.get("RUNS", "5"))
    for line in measure(
        task,
        os.path.abspath(config),
        int(batch_size),
        [int(x) for x in lengths.split(",")],
        masks,
        tuple(rest) or SIDES,
        runs,
    ):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
