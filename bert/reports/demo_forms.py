"""The forms of the page of demo.py: what a model can be asked."""

import os

from bert.common.errors import UserError
from bert.common.progress import say
from bert.modeling import checkpoints
from bert.modeling.formats.model_folder import ModelFolder
from bert.reports import answers
from bert.reports.demo_page import Field, Form
from bert.serving import answer_lines, asking, export_folder
from bert.serving.predict_settings import Settings
from bert.tasks.features import inspection
from bert.tasks.fill_mask import run as masks

LABELS = {  # of the inputs of exports: label, example, lines
    "text": ("Text", "The letter arrived on Monday.", 4),
    "text_b": ("Second text", "A letter has come.", 4),
    "question": ("Question", "Who wrote the letter?", 1),
    "context": ("Passage", "Anna wrote the letter. Tom read it.", 8),
    "choices": ("Choices, one per line", "She sent it.\nShe ate it.", 4),
}
SCORES = (  # of the evaluation, to tell
    "accuracy exact_match exact f1 macro_f1 micro_f1 matthews pearson"
).split()


def forms_of_export(settings: Settings) -> tuple[list[Form], str]:
    """The form of an exported model, and notes on it.

    Args:
        settings: of predict.py, which loads it.
    """
    served = asking.load(settings)

    def answer(values):
        texts = dict(values)
        if served.has_choices:
            last = served.inputs[-1]
            texts[last] = [x for x in values[last].split("\n") if x.strip()]
            if not texts[last]:
                raise UserError("no choices", expected="one per line")

        example = [texts[name] for name in served.inputs]
        (values,) = asking.answer(served, [example], 1)
        answer_lines.to_json(values, 1)  # rejects numbers that are not finite

        view = answers.view(values, texts)

        # A text that was cut has an answer, too, so the page must say so.
        if served.count_tokens:
            limit, (count,) = served.count_tokens(
                asking.columns_of(served, [example])
            )
            if count > limit:
                view["note"] = f"{count} tokens, cut to the model's {limit}"
        return view

    texts = export_folder.read_extra(
        settings.model, export_folder.EXAMPLE, dict[str, str]
    )
    fields = []
    for name in served.inputs:
        label, example, lines = LABELS.get(name, (name, "", 4))
        fields.append(Field(name, label, texts.get(name, example), lines))

    # Notes: what the model takes, and how well it did.
    notes = []
    if served.count_tokens:  # a classifier
        example = [field.example for field in fields]
        limit, _ = served.count_tokens(asking.columns_of(served, [example]))
        (values,) = asking.answer(served, [example], 1)
        notes.append(f"at most {limit} tokens")
        if "probabilities" in values:  # not of a regression
            labels = sorted(values["probabilities"])
            notes.append(f"labels: {', '.join(labels)}")

    metrics = export_folder.read_extra(
        settings.model, export_folder.METRICS, dict[str, float | None]
    )
    for key, value in metrics.items():
        if (name := key.removeprefix("eval_")) in SCORES and value is not None:
            notes.append(f"{name} {value:.4g}")
    return [Form("ask", "Ask the model", fields, answer)], "; ".join(notes)


def forms_of_run(path: str, top_k: int) -> tuple[list[Form], str]:
    """The forms of a checkpoint, masks, similarity and attention, and a note.

    Args:
        path: folder or prefix of the checkpoint.
        top_k: number of words for each mask.
    """
    model = ModelFolder.open(path)
    model.check()
    config, path = model.config, model.resolve()
    say(f"loading {path} ...")
    inspector = inspection.Inspector(model)

    def similarity(values):
        value = inspector.similarity(values["first"], values["second"])
        return {"kind": "similarity", "value": value}

    def attention(values):
        layer, head = (
            numbered(values[x], x, most)
            for x, most in (
                ("layer", config.num_hidden_layers),
                ("head", config.num_attention_heads),
            )
        )
        text = values["text"], values["text_b"]
        return answers.attention(*inspector.attention(*text, layer, head))

    def choices(count):
        return tuple(str(i + 1) for i in range(count))

    forms = [
        Form(
            "similarity",
            "Similarity",
            [
                Field("first", "First text", "The shape of a tensor.", 3),
                Field("second", "Second text", "The size of an array.", 3),
            ],
            similarity,
        ),
        Form(
            "attention",
            "Attention",
            [
                Field("text", "Text", "The shape of the array is known.", 3),
                Field(
                    "text_b",
                    "Second text, or nothing",
                    "It has two axes.",
                    3,
                    is_optional=True,
                ),
                Field(
                    "layer", "Layer", "1", 1, choices(config.num_hidden_layers)
                ),
                Field(
                    "head", "Head", "1", 1, choices(config.num_attention_heads)
                ),
            ],
            attention,
        ),
    ]

    # Of fine-tuned checkpoints, the masked-LM head is gone.
    note = os.path.basename(path)
    if "cls/predictions/output_bias" not in checkpoints.read(path):
        return forms, f"{note}; without a masked-LM head"
    form = masks_form(model, top_k)
    return [form, *forms], note


def masks_form(model: ModelFolder, top_k: int) -> Form:
    """The form of the masked LM of a checkpoint."""
    network, tokenizer = masks.load_model(model), model.tokenizer.exact

    def fill(values):
        sentence = " ".join(values["sentence"].split())
        if masks.vocabulary.MASK not in sentence:
            raise UserError("no mask", expected="[MASK] for a word")

        tokens = masks.tokenize(sentence, tokenizer)
        masks.check_length(tokens, model.config)
        words = masks.fill(network, tokenizer, tokens, top_k)
        return answers.masks(sentence, words)

    field = Field(
        "sentence",
        "Sentence with [MASK]",
        "The shape of the input [MASK] must be known.",
        3,
    )
    return Form("fill_mask", "Fill masks", [field], fill)


def numbered(value: str, name: str, most: int) -> int:
    """Converts the number of a layer or head, from 1, to its index.

    Raises:
        UserError: it is no such number.
    """
    if not value.isdecimal() or not 1 <= int(value) <= most:
        raise UserError(f"{name} {value!r}", expected=f"1 to {most}")
    return int(value) - 1
