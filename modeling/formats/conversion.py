"""A model's weights, config and vocabulary, read from other formats."""

import dataclasses
import os

from data.text import vocabulary
from modeling.config import BertConfig


@dataclasses.dataclass
class Bert:
    """A model outside of any format.

    Attributes:
        path: where it was read, for messages.
        config: sizes.
        values: original name -> float32 array.
        left_out: names of what no model here has.
        tokens: of its vocabulary, or None.
        do_lower_case: its casing, or None if that is not known.
        strip_accents: whether accents are stripped; None: as do_lower_case.
        task: kind and names of its labels, as `task.json` has them, or None.
    """

    path: str
    config: BertConfig
    values: dict
    left_out: list[str]
    tokens: list[str] | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    task: dict | None = None


def read_hub(path: str, config_file: str | None) -> Bert:
    """Reads a SavedModel of TF-Hub without loading its graph."""
    from modeling.formats import model_garden, saved_models

    variables = saved_models.variables_of(path)
    values, left_out = model_garden.read(variables)
    if config_file:
        config = BertConfig.from_json_file(config_file)
    else:
        heads = model_garden.attention_heads(variables)
        config = saved_models.read_config(path, values, heads)
    casing = saved_models.read_casing(variables)
    bert = Bert(path, config, values, left_out, None, *casing)
    asset = os.path.join(path, "assets", "vocab.txt")
    if os.path.isfile(asset):
        bert.tokens = list(vocabulary.read_vocabulary(asset))
    return bert
