"""Log lines of training and evaluation."""

import numpy as np

from bert.training import logs
from tests.helpers import tiny


def test_an_objective_without_answers_has_no_accuracy(capsys):
    sums = np.array([8.0, 5.0, 7.0, 2.0, 2.0])
    values = logs.means(tiny.make_steps(), sums, 2)
    assert values == {"loss": 1.6, "error_loss": 1.6, "gradient_norm": 1.0}
    logs.log_evaluation(7, values, ("error",))
    rates = dict.fromkeys(("examples_per_second", "tokens_per_second"), 0)
    rates["learning_rate"] = 0.5
    logs.log_training(7, 11, values | rates, ("error",), 0)
    held_out, trained = capsys.readouterr().err.splitlines()
    assert held_out == "step 7 held out | loss 1.6000 = error 1.6000"
    assert trained.startswith("step 7/11 | loss 1.6000 = error 1.6000 | lr 0.5")
