"""Files of sentence-transformers, which define the embedding of a text.

    modules.json                        Transformer, Pooling, and Normalize
    1_Pooling/config.json               pooling of the tokens
    config_sentence_transformers.json   prompts, which are put before a text,
                                        and the size of truncated embeddings
    sentence_bert_config.json           see `tokenizer_files`

They are read and written beside checkpoints of any format. Before version 2
the network was in a subfolder, `0_Transformer`, which is also read.
"""

import dataclasses
import json
import os
import re
from typing import Annotated

import msgspec

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data.pooling import POOLINGS, PoolingConfig

MODULES = "modules.json"
_NUMBERED = re.compile(r"[0-9]+_")  # folder of a module
_POOLING = "1_Pooling"
_PROMPTS = "config_sentence_transformers.json"
_LENGTH = "sentence_bert_config.json"
_LIBRARY = "sentence_transformers."
_MODES = {  # keys of a pooling before version 5.4, and their names since then
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


class _Module(msgspec.Struct):
    path: Annotated[str, msgspec.Meta(pattern=r"^(\w[\w.-]*)?\Z")]
    type: str


class _Prompts(msgspec.Struct):
    prompts: dict[str, str] = {}
    default_prompt_name: str | None = None
    truncate_dim: Annotated[int, msgspec.Meta(ge=1)] | None = None


def network_of(folder: str) -> str:
    """Folder of the network: `0_Transformer` in models of old versions.

    Args:
        folder: str. The model's folder.

    Raises:
        UserError: `modules.json` is damaged.
    """
    path = os.path.join(folder, MODULES)
    if storage.is_file(path):
        for module in json_files.read(path, list[_Module]):
            if module.path and module.type == f"{_LIBRARY}models.Transformer":
                return os.path.join(folder, module.path)
    return folder


def read(folder: str) -> PoolingConfig | None:
    """Reads the files of a folder; None if they have no pooling.

    Unsupported modules are only reported by `check`, since the caller may only
    need the weights.

    Args:
        folder: str. The model's folder, or the folder of its network.

    Raises:
        UserError: a file is damaged.
    """
    above, name = os.path.split(folder)
    if _NUMBERED.match(name) and network_of(above) == folder:
        folder = above
    path = os.path.join(folder, MODULES)
    if not storage.is_file(path):
        return None
    modules = json_files.read(path, list[_Module])
    kinds = [module.type.rpartition(".")[2] for module in modules]
    if kinds == ["Transformer"]:  # a cross-encoder
        return None

    path, prompts = os.path.join(folder, _PROMPTS), _Prompts()
    if storage.is_file(path):
        prompts = json_files.read(path, _Prompts)
    pooling_config = PoolingConfig(
        "mean",
        "Normalize" in kinds,
        prompts.prompts,
        prompts.default_prompt_name,
        prompts.truncate_dim,
    )
    try:
        pooling = _read_pooling(folder, modules, kinds, prompts.prompts)
    except UserError as error:
        return dataclasses.replace(pooling_config, mistake=error)
    return dataclasses.replace(pooling_config, pooling=pooling)


def _read_pooling(
    folder: str, modules: list[_Module], kinds: list[str], prompts: dict
) -> str:
    """Reads the pooling from any version's schema; rejects other modules."""
    known = ["Transformer", "Pooling", "Normalize"]
    are_theirs = all(module.type.startswith(_LIBRARY) for module in modules)
    if not are_theirs or kinds not in (known[:2], known):
        listed = [f"{x.path} ({x.type})".strip() for x in modules]
        raise UserError(
            f"the modules are {', '.join(listed)}",
            path=os.path.join(folder, MODULES),
            expected=f"{', '.join(known)} of sentence-transformers",
            fix="to ignore the other modules pass pooling=..., or remove "
            "modules.json from a copy",
        )

    path = os.path.join(folder, modules[1].path, "config.json")
    config = json_files.read(path)
    modes = config.get("pooling_mode") or [
        mode for key, mode in _MODES.items() if config.get(key)
    ]
    modes = modes if isinstance(modes, list) else [modes]
    modes = modes or ["mean"]  # the default of sentence-transformers
    if len(modes) > 1 or modes[0] not in POOLINGS:
        raise UserError(
            f"pooling {' and '.join(map(str, modes))}",
            path=path,
            expected=f"one of {', '.join(POOLINGS)}",
        )
    if any(prompts.values()) and config.get("include_prompt") is False:
        raise UserError(
            "include_prompt is false",
            path=path,
            expected="true: prompts are always pooled, too",
        )
    return modes[0]


def write(
    folder: str,
    pooling_config: PoolingConfig,
    hidden_size: int,
    max_length: int,
) -> None:
    """Writes the files, as sentence-transformers did before version 5.4.

    Args:
        folder: str. Folder to write to.
        pooling_config: PoolingConfig. Supported pooling, prompts and size.
        hidden_size: int. Hidden size of the model.
        max_length: int. Longest sequence in tokens.
    """
    pooling_config.check()
    modules = [("", "Transformer"), (_POOLING, "Pooling")]
    if pooling_config.normalize:
        modules.append(("2_Normalize", "Normalize"))

    modes = {
        key: mode == pooling_config.pooling for key, mode in _MODES.items()
    }
    files = {
        MODULES: [
            {
                "idx": index,
                "name": str(index),
                "path": path,
                "type": f"{_LIBRARY}models.{kind}",
            }
            for index, (path, kind) in enumerate(modules)
        ],
        f"{_POOLING}/config.json": {
            "word_embedding_dimension": hidden_size,
            **modes,
        },
        _PROMPTS: {
            "prompts": pooling_config.prompts,
            "default_prompt_name": pooling_config.default_prompt,
            "truncate_dim": pooling_config.truncate_dim,
        },
        _LENGTH: {"max_seq_length": max_length, "do_lower_case": False},
    }

    storage.make_folder(os.path.join(folder, _POOLING))
    for name, values in files.items():
        text = json.dumps(values, indent=2, ensure_ascii=False)
        write_whole(os.path.join(folder, name), f"{text}\n")
