"""Configs: which network it is, and whether rows fit into it."""

from checks import model as config_checks
from tests.helpers import small


def test_which_network_it_is():
    config = small.config()
    ours = small.config(vocab_size=101, hidden_dropout_prob=0.1)
    other = small.config(num_hidden_layers=3)
    sizes = (
        "c: num_hidden_layers 2, hidden_size 15, num_attention_heads 5, "
        "intermediate_size 19: "
    )
    for published, known in (
        ({"a": other, "b": ours, "c": config}, "as in b and c"),
        ({"a": other}, "none of those in configs/"),
    ):
        (found,) = config_checks.check_sizes(config, "c", published)
        assert (found.level, found.message) == ("fine", sizes + known)


def test_rows_that_are_longer_than_the_table_of_positions():
    config = small.config()
    for length in (None, 5, small.POSITIONS):
        assert config_checks.check_length(config, "c", length, "r") == []
    (found,) = config_checks.check_length(config, "c", 17, "r")
    assert (found.level, found.message) == (
        "wrong",
        "c: max_position_embeddings is 13; expected at least 17, the length of "
        "r; make shorter records, or lengthen the table: "
        "convert_checkpoint.py --extend_positions",
    )
