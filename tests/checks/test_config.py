"""Configs: known sizes, and the length of records."""

from checks import model as config_checks
from tests.helpers import small


def test_known_sizes_are_named():
    config = small.config()
    ours = small.config(vocab_size=101, hidden_dropout_prob=0.1)
    other = small.config(num_hidden_layers=3)
    sizes = (
        "c: num_hidden_layers 2, hidden_size 15, num_attention_heads 5, "
        "intermediate_size 19: "
    )
    for published, known in (
        ({"a": other, "b": ours, "c": config}, "as in b and c"),
        ({"a": other}, "not in configs/"),
    ):
        (found,) = config_checks.check_sizes(config, "c", published)
        assert (found.level, found.message) == ("fine", sizes + known)


def test_records_that_are_longer_than_the_position_embeddings():
    config = small.config()
    for length in (None, 5, small.POSITIONS):
        assert config_checks.check_length(config, "c", length, "r") == []
    (found,) = config_checks.check_length(config, "c", 17, "r")
    assert (found.level, found.message) == (
        "wrong",
        "c: max_position_embeddings is 13; expected at least 17, the length of "
        "r; create shorter records, or extend the position embeddings with "
        "convert_checkpoint.py --extend_positions",
    )
