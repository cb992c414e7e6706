"""Pages of demo.py: one tab for each use of a model.

    page_of_task or pages_of_run -> make_app -> serve

gradio renders the pages, and escapes the texts.
"""

import html
import math
import socket
from collections.abc import Callable

import fastapi
import gradio as gr
import uvicorn
from fastapi.middleware import trustedhost

from bert.common.errors import UserError, reason_of
from bert.common.progress import log
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.export import folder as export_folder
from bert.inference.example_parsing import has_choices
from bert.inference.predictor import Predictor, json_values
from bert.modeling.encoder import Encoder
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import MASKED_LM, heads_of
from bert.models.embeddings import embed
from bert.tasks.features import inspection
from bert.tasks.fill_mask import task as masks
from bert.tasks.fill_mask.task import TEXT, MaskedWords
from bert.tasks.metrics import METRICS

HOST = "127.0.0.1"
MAX_BYTES = 1 << 20  # largest request
LABELS = {  # input of a task -> label, example
    "text": ("Text", "The letter arrived on Monday."),
    "text_b": ("Second text", "A letter has come."),
    "question": ("Question", "Who wrote the letter?"),
    "context": ("Passage", "Anna wrote the letter. Tom read it."),
    "choices": ("Choices, one per line", "She sent it.\nShe ate it."),
}

# gradio has its own scripts and styles; other sources are forbidden.
_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data:; "
    "frame-ancestors 'none'"
)


def page_of_task(path: str, predictor: Predictor) -> dict[str, gr.Interface]:
    """Page of a fine-tuned model: name -> page.

    Args:
        path: str. Folder of the model.
        predictor: Predictor. The loaded model.
    """
    names = predictor.task.inputs

    def answer(*texts):
        example = dict(zip(names, texts))
        if has_choices(predictor.task):
            example[names[-1]] = _lines(texts[-1], names[-1])
        (encoded,) = predictor.task.encode([example])
        (prediction,) = predictor([example])
        values = json_values(prediction)

        # Truncated texts have a prediction too, so the page reports them.
        drawn = _drawn(values, [*example.values()])
        if count := encoded.num_tokens:
            most = predictor.task.max_length
            lengths = f"{count} tokens; the model reads at most {most}"
            drawn.append(gr.Markdown(lengths))
        return drawn if len(drawn) > 1 else drawn[0]

    own = export_folder.read_extra(path, export_folder.EXAMPLE, dict[str, str])
    inputs = []
    for name in names:
        label, text = LABELS.get(name, (name, "A text."))
        inputs.append(gr.Textbox(own.get(name, text), label=label, lines=3))

    metrics = export_folder.read_extra(
        path, export_folder.METRICS, dict[str, float | None]
    )
    scores = {key.removeprefix("eval_"): x for key, x in metrics.items()}
    note = "; ".join(
        f"{name} {value:.4g}"
        for name, value in scores.items()
        if name in METRICS
        and not METRICS[name].lower_is_better
        and value is not None
    )

    # The page opens with the prediction for its example.
    outputs = answer(*(box.value for box in inputs))
    return {"Ask the model": _page("ask", answer, inputs, outputs, note)}


def _lines(text: str, name: str) -> list[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise UserError(f"no {name}", expected="one per line")
    return lines


def _drawn(answer: dict, example: list) -> list:
    """Components that show a prediction.

    Args:
        answer: dict. Prediction, as `predict.py` prints it.
        example: list. Input texts of the prediction, and list of choices.
    """
    label, probabilities = answer.get("label"), answer.get("probabilities")
    drawn = []
    if {"answer", "start", "end", "probability"} <= answer.keys():
        best = {answer["answer"] or "no answer": answer["probability"]}
        passage = _marked(example[-1], [answer | {"entity": "answer"}])
        drawn = [gr.Label(best, label="Answer"), passage]

    elif "entities" in answer:
        entities = [
            x | {"entity": x["type"] or "entity"} for x in answer["entities"]
        ]
        drawn = [_marked(example[0], entities)]

    elif isinstance(label, list):  # multi-label
        drawn = [
            gr.Textbox(", ".join(label) or "no label", label="Labels"),
            gr.Label(probabilities, label="Probabilities", show_heading=False),
        ]

    elif isinstance(probabilities, dict):
        drawn = [gr.Label(probabilities, label="Label")]

    elif isinstance(example[-1], list) and isinstance(probabilities, list):
        choices = dict(zip(example[-1], probabilities))
        drawn = [gr.Label(choices, label="Choice")]

    return [*drawn, gr.JSON(answer, label="As predict.py prints it")]


def _marked(text: str, entities: list[dict]) -> gr.HighlightedText:
    value = {"text": text, "entities": entities}
    return gr.HighlightedText(value, label="Text")


def pages_of_run(path: str, top_k: int) -> dict[str, gr.Interface]:
    """Pages of a checkpoint by name: masks, neighbours and attention.

    Args:
        path: str. Folder or prefix of the checkpoint.
        top_k: int. Number of words for each mask.
    """
    model = ModelFolder.open(path)
    model.check()
    log(f"loading {model.resolve()} ...")
    inspector = inspection.Inspector(model)
    pages = {
        "Neighbours": _neighbours_page(inspector.encoder, model.tokenizer),
        "Attention": _attention_page(inspector, model.config),
    }

    # Fine-tuned checkpoints have no masked-LM head.
    if MASKED_LM not in heads_of(model.values):
        log("no masked-LM head: no page that fills masks")
        return pages
    return {"Fill masks": _masks_page(model, top_k), **pages}


def _masks_page(model: ModelFolder, top_k: int) -> gr.Interface:
    task = MaskedWords(model.tokenizer, model.max_length, top_k)
    predictor = Predictor(task, KerasEngine.load(model, MASKED_LM))

    def fill(sentence):
        sentence = " ".join(sentence.split())
        first, *parts = sentence.split(vocabulary.MASK)
        if not parts:
            raise UserError("no mask", expected="[MASK] for a word")

        encoded = task.encode([{TEXT: sentence}])
        masks.check_length(encoded[0], task.max_length)
        ((_, words),) = predictor.compute(encoded)

        # The number of a mask connects the sentence with the table.
        filled: list[tuple[str, str | None]] = [(first, None)]
        rows = []
        for number, (ranked, part) in enumerate(zip(words, parts), start=1):
            filled += [(ranked[0][0], f"{number}"), (part, None)]
            rows += [[number, word, f"{p:.3f}"] for word, p in ranked]
        return filled, rows

    text = "The shape of the input [MASK] must be known."
    headers = ["mask", "word", "probability"]
    return _page(
        "fill_mask",
        fill,
        [gr.Textbox(text, label="Sentence with [MASK]", lines=3)],
        [
            gr.HighlightedText(label="Filled"),
            gr.Dataframe(headers=headers, label="Words"),
        ],
    )


def _neighbours_page(encoder: Encoder, tokenizer: Tokenizer) -> gr.Interface:
    def rank(text, others):
        lines = _lines(others, "other texts")
        first, *vectors = embed(
            [text, *lines], (encoder, tokenizer), pooling="mean", normalize=True
        )
        pairs = [(line, float(first @ x)) for line, x in zip(lines, vectors)]
        ordered = sorted(pairs, key=lambda pair: -pair[1])
        return [[f"{cosine:.3f}", line] for line, cosine in ordered]

    others = "The size of an array.\nA cat sleeps.\nThe shape of a matrix."
    headers = ["cosine", "text"]  # texts last: they may be long
    return _page(
        "neighbours",
        rank,
        [
            gr.Textbox("The shape of a tensor.", label="Text"),
            gr.Textbox(others, label="Other texts, one per line", lines=5),
        ],
        [gr.Dataframe(headers=headers, label="Nearest first", wrap=True)],
        "Cosines of the mean embeddings of the last layer. If the network was "
        "not trained for similarity, all are close to 1: compare them.",
    )


def _attention_page(inspector: inspection.Inspector, config) -> gr.Interface:
    def shade(p):  # by the square root, since most values are small
        return f"background: rgb(11 98 196 / {50 * math.sqrt(p):.0f}%)"

    def attend(text, text_b, layer, head):
        tokens, weights = inspector.attention(text, text_b, layer, head)
        rows = list(zip(tokens, weights))
        return {
            "headers": ["", *tokens],
            "data": [[x, *(f"{p:.2f}" for p in row)] for x, row in rows],
            "metadata": {"styling": [["", *map(shade, x)] for x in weights]},
        }

    def numbers(count, label):
        choices = list(range(1, count + 1))
        return gr.Dropdown(choices, value=1, type="index", label=label)

    return _page(
        "attention",
        attend,
        [
            gr.Textbox("The shape of the array is known.", label="Text"),
            gr.Textbox("It has two axes.", label="Second text, or nothing"),
            numbers(config.num_hidden_layers, "Layer"),
            numbers(config.num_attention_heads, "Head"),
        ],
        [gr.Dataframe(label="Probabilities")],
        "A row for each token that attends, a column for each token it "
        "attends to; a row's probabilities sum to 1.",
    )


def _page(
    name: str, answer: Callable, inputs: list, outputs: list, note: str = ""
) -> gr.Interface:
    """A page whose example is the initial content of its inputs.

    Args:
        name: str. Name of its function in gradio's API.
        answer: function. Values of `inputs` -> values of `outputs`. Raises
            UserError for invalid inputs.
        inputs: list. Input components.
        outputs: list. Output components.
        note: str. Line above the inputs. Default: "".
    """

    def ask(*values):
        try:
            return answer(*values)
        except UserError as error:
            # The browser takes the message as HTML.
            raise gr.Error(
                html.escape(str(error)), duration=None, print_exception=False
            ) from None

    return gr.Interface(
        ask,
        inputs,
        outputs,
        examples=[[component.value for component in inputs]],
        cache_examples=False,
        preload_example=False,
        description=note,
        submit_btn="Ask",
        clear_btn=None,
        flagging_mode="never",
        deep_link=False,
        api_name=name,
        analytics_enabled=False,
    )


def make_app(model: str, pages: dict[str, gr.Interface]) -> fastapi.FastAPI:
    """Makes the server's application, for this machine only.

    Args:
        model: str. Name of the model, used as the heading.
        pages: dict. Name -> page.
    """
    app = fastapi.FastAPI(openapi_url=None)

    @app.middleware("http")
    async def guard(request, call_next):
        size = int(request.headers.get("content-length", 0))
        if size > MAX_BYTES or "transfer-encoding" in request.headers:
            message = (
                f"the request is too large; expected at most {MAX_BYTES} bytes"
            )
            return fastapi.responses.JSONResponse({"error": message}, 413)

        response = await call_next(request)
        response.headers["Content-Security-Policy"] = _POLICY
        return response

    # Other sites may not send requests through their own host name.
    app.add_middleware(
        trustedhost.TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]
    )
    tabs = gr.TabbedInterface(
        [*pages.values()],
        [*pages],
        title=html.escape(model),
        analytics_enabled=False,
    )
    return gr.mount_gradio_app(
        app,
        tabs,
        "/",
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
    )


def listen(port: int) -> socket.socket:
    """Opens the port on this machine.

    Args:
        port: int. Port number; 0 for any free port.

    Raises:
        UserError: the port is in use.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UserError(
            f"--port={port}: {reason_of(error)}",
            expected="a free port",
            fix="pass another port, or 0 for any",
        ) from None


def serve(app: fastapi.FastAPI, opened: socket.socket) -> None:
    """Serves requests until Ctrl-C."""
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[opened])
