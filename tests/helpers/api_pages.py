"""The pages of docs/api, one for each public name of `bert`.

python -m tests.helpers.api_pages
"""

import inspect
import pathlib

import bert

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "api"
GROUPS = {
    "Models of text": ("TextClassifier", "TokenClassifier", "QuestionAnswerer"),
    "Embeddings and masks": ("embed", "fill_mask"),
    "Encoders": (
        *("load_encoder", "new_encoder", "save"),
        *("Encoder", "BertConfig", "Tokenizer"),
    ),
    "Heads on an encoder": (
        *("classifier", "token_classifier", "span_model"),
        *("masked_lm", "next_sentence"),
    ),
    "Training": (
        *("AdamWeightDecay", "WarmupLinearDecay", "pretraining_dataset"),
    ),
}
HEAD = """# API reference

Classes and functions of `import bert`, made from their docstrings. The
[guide](../library.md) shows how to use them together; [modules](modules.md)
lists the functions below them.
"""
PAGE = """::: {path}
    options:
      heading: bert.{name}
      heading_level: 1
"""


def pages() -> dict[str, str]:
    """Name of a file in docs/api -> its text."""
    lines, texts = [HEAD], {}
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            found = getattr(bert, name)
            summary = inspect.getdoc(found).splitlines()[0]
            lines.append(f"- [bert.{name}]({name}.md): {summary}")
            path = f"{found.__module__}.{found.__qualname__}"
            texts[f"{name}.md"] = PAGE.format(path=path, name=name)
        lines.append("")
    return {"README.md": "\n".join(lines[:-1]) + "\n", **texts}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages().items():
        (FOLDER / file).write_text(text)
