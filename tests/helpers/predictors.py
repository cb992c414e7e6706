"""Predictors without a network, for tests of what is around them."""

import threading
from collections.abc import Callable

from bert.data.sequences import Encoded
from bert.inference.predictor import Predictor


class _Task:
    """A task whose only sequence of an example is the example itself.

    Args:
        inputs: names of the fields.
        can_rank: whether texts of a query get scores.
    """

    head = "classifier"
    signatures, optional_inputs, max_length = ("serving_default",), (), 13

    def __init__(self, inputs, can_rank):
        self.inputs, self.can_rank = inputs, can_rank

    def encode(self, examples):
        return [Encoded([(x, [])]) for x in examples]

    def combine(self, encoded, outputs):
        (prediction,) = outputs
        return prediction

    def decode(self, encoded, results):
        return results


def predictor_of(
    answer: Callable[[dict], dict] = dict,
    *inputs: str,
    can_rank: bool = False,
) -> Predictor:
    """A predictor that answers by a function, by default the example.

    Args:
        answer: example -> prediction.
        *inputs: names of the fields; default: text.
        can_rank: of the task.
    """
    predictor = Predictor(_Task(inputs or ("text",), can_rank), None)
    predictor.compute_sequences = lambda x: [answer(y) for (y, _), _ in x]
    return predictor


class Stalled:
    """In the place of a queue: each request is answered once it may."""

    def __init__(self):
        self.predictor = predictor_of()
        self.started, self.may_end = threading.Semaphore(0), threading.Event()

    def __call__(self, examples):
        self.started.release()
        assert self.may_end.wait(300)
        return self.predictor(examples)
