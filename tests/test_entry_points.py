"""Every entry point of every task gives the predictions of one reference.

    examples -> exact tokenizer -> NumPy encoder, float64 -> NumPy decoding

Entry points: the files of the script, the Keras class, predict.py and HTTP with
a run and an export, with both engines, and the text signature of an export.
"""

import functools
import json
import pathlib

import numpy as np
import pytest

import bert
import predict
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.data.text import tokenization, words
from bert.data.text.tokenizer import Tokenizer
from bert.inference import predictor
from bert.inference.predictor import Predictor
from bert.modeling.formats import conversion
from tests.helpers import (
    http_server,
    numpy_bert,
    small,
    stranger,
    trained,
    word_windows,
)
from tests.helpers.trained import BLANK, LONG, TEXTS, S

pytestmark = pytest.mark.slow
# No JSON can hold these; the last one takes the fast tokenizer.
HALF = ["the \ud800 cat", "\udc00", f"\udfff{LONG} " * 9]
# Texts of all lengths share rows; the last ones are truncated.
SINGLE = [
    {"text": x}
    for x in [*TEXTS, *BLANK, *(f"stones {'like ' * n}" for n in range(2 * S))]
]
PAIRS = [{"text": a, "text_b": b} for a, b in trained.PAIRS]
QUERIES = [
    {"text": TEXTS[0], "texts": [*TEXTS[1:4], *TEXTS[5:], ""]},
    {"text": LONG, "texts": ["a tree", "日本語", "the cat", "a cat"]},
]
QUESTIONS = [
    {"question": a, "context": b}
    for a, b in [
        *trained.ASKED_QUESTIONS,
        ("", TEXTS[0]),
        *(("Where?", x) for x in BLANK),
        (LONG, LONG),
    ]
]
WORDS = [{"text": x} for x in [*TEXTS, *BLANK]]
SPLIT = [{"text": " ".join(x)} for x in trained.SENTENCES]
CHOICES = [
    {"context": x, "choices": y}
    for x, y in [
        *zip(TEXTS, trained.CHOICES * 3),
        *((x, [TEXTS[0], x, "", LONG]) for x in BLANK),
        ("the cat", ["", " "]),
        ("the cat", [LONG]),
    ]
]


class Reference:
    """The predictions of a run, from the arrays of its checkpoint.

    Args:
        run: folder of the run.
    """

    def __init__(self, run: pathlib.Path):
        (index,) = run.glob("model.ckpt-*.index")
        values = tensor_files.read(str(index.with_suffix("")))
        self.weights = {k: x.astype(np.float64) for k, x in values.items()}
        vocab = str(run.parent / "vocab.txt")
        self.tokenizer = Tokenizer(vocab, do_lower_case=True)
        self.exact = tokenization.FullTokenizer(vocab, do_lower_case=True)
        task = run / "task.json"
        self.task = json.loads(task.read_text()) if task.exists() else {}

    def ids(self, text: str) -> list[int]:
        return self.exact.convert_tokens_to_ids(self.exact.tokenize(text))

    def row(self, a: list[int], b: list[int] = ()) -> tuple:
        """[CLS] a [SEP] b [SEP], without the last part if b is empty."""
        cls, sep = (self.exact.vocab[x] for x in ("[CLS]", "[SEP]"))
        second = [*b, sep] if b else []
        return [cls, *a, sep, *second], [0] * (len(a) + 2) + [1] * len(second)

    def encode(self, rows: list[tuple]) -> tuple[list, np.ndarray]:
        """Vectors of the tokens of each row, [S, H]; pooled ones, [N, H]."""
        assert max(len(ids) for ids, _ in rows) <= S
        shape = len(rows), S
        inputs = {
            name: np.zeros(shape, int)
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        for number, (ids, segments) in enumerate(rows):
            for name, x in zip(inputs, (ids, 1, segments)):
                inputs[name][number, : len(ids)] = x
        layers, pooled = numpy_bert.encode(
            self.weights, inputs, trained.L, small.A
        )
        found = [x[: len(ids)] for x, (ids, _) in zip(layers[-1], rows)]
        return found, pooled

    def head(self, x: np.ndarray, scope: str = "") -> np.ndarray:
        weights = self.weights[f"{scope}output_weights"]
        return x @ weights.T + self.weights.get(f"{scope}output_bias", 0)

    def __call__(self, examples: list[dict]) -> list[dict]:
        of_kind = {
            "spans": self.answer,
            "entities": self.label_words,
            "choices": self.choose,
            None: self.embed,
        }
        function = of_kind.get(self.task.get("kind"), self.classify)
        return [
            self.rank(function, x) if "texts" in x else function(x)
            for x in examples
        ]

    def rank(self, function, query: dict) -> dict:
        if "kind" in self.task:
            found = [
                function({"text": query["text"], "text_b": x})
                for x in query["texts"]
            ]
            scores = [x["probabilities"]["1"] for x in found]
        else:
            vectors = [
                np.array(function({"text": x})["vector"])
                for x in (query["text"], *query["texts"])
            ]
            scores = [vectors[0] @ x for x in vectors[1:]]
        order = np.argsort(-np.array(scores), kind="stable")
        return {
            "ranking": [
                {"index": i, "text": query["texts"][i], "score": scores[i]}
                for i in order.tolist()
            ]
        }

    def classify(self, example: dict) -> dict:
        a, b = self.ids(example["text"]), self.ids(example.get("text_b", ""))
        if "windows" in self.task:
            stride = self.task["windows"]["stride"]
            parts = windows(len(a), S - 2, stride) or [(0, 0)]
            rows = [self.row(a[x : x + n]) for x, n in parts]
        else:
            truncate = self.task.get("truncate", "head")
            space = S - 3 if b else S - 2
            rows = [self.row(*truncated(a, b, space, truncate))]
        pool = self.task.get("windows", {}).get("pool", "mean")
        logits = getattr(self.head(self.encode(rows)[1]), pool)(0)
        if self.task["kind"] == "regression":
            return {"value": logits[0]}

        decision = self.task.get("decision", {})
        shifted = logits - np.array(decision.get("log_weights") or 0.0)
        margins = shifted
        if decision.get("cuts"):
            margins = logits - np.array(decision["cuts"])
        scaled = shifted / decision.get("temperature", 1.0)
        names = self.task["labels"]
        if self.task["kind"] == "classes":
            chances = softmax(scaled)
            best = margins.argmax()
            is_unknown = chances[best] < decision.get("unknown_below", 0)
            label = None if is_unknown else names[best]
        else:
            chances = 1 / (1 + np.exp(-scaled))
            label = [x for x, margin in zip(names, margins) if margin >= 0]
        return {"label": label, "probabilities": dict(zip(names, chances))}

    def embed(self, example: dict) -> dict:
        ids = self.ids("the cat: " + example["text"])
        ((tokens,), _) = self.encode([self.row(ids[: S - 2])])
        vector = tokens.mean(0)
        return {"vector": [*(vector / np.sqrt(vector @ vector))]}

    def choose(self, example: dict) -> dict:
        choices, unk = example["choices"], self.exact.vocab["[UNK]"]
        context = self.ids(example["context"])
        ids = [self.ids(x) or [unk] for x in choices]
        rows = [self.row(*truncated(context, x, S - 3)) for x in ids]
        _, pooled = self.encode(rows)
        scores = self.head(pooled, "cls/swag/")[:, 0]
        scores[[not x.strip() for x in choices]] = -1e38
        chances = softmax(scores)
        return {"best": int(chances.argmax()), "probabilities": [*chances]}

    def answer(self, example: dict) -> dict:
        task, context = self.task, example["context"]
        question = self.ids(example["question"])[: task["max_query_length"]]
        (tokens,) = self.tokenizer.with_offsets([context])
        ids = tokens.ids.tolist()
        assert ids == self.ids(context)
        size = S - 3 - len(question)
        parts = windows(len(ids), size, task["doc_stride"])
        if not parts:
            return answered("", 1.0, 0, 0, 1e6)

        # As in the original: `max_context` chooses the window of a start.
        def context_of(window: tuple, position: int) -> float:
            start, length = window
            left = position - start
            right = start + length - 1 - position
            if min(left, right) < 0:
                return -1.0
            return min(left, right) + 0.01 * length

        nulls, spans, head = [], [], len(question) + 2
        for number, (start, length) in enumerate(parts):
            cells = self.row([], ids[start : start + length])[0][2:]
            row = self.row(question)
            row = row[0] + cells, row[1] + [1] * len(cells)
            ((vectors,), _) = self.encode([row])
            begins, ends = self.head(vectors, "cls/squad/").T
            nulls.append(begins[0] + ends[0])
            best = [
                np.argsort(-x, kind="stable")[: task["n_best_size"]].tolist()
                for x in (begins, ends)
            ]
            for first in best[0]:
                for last in best[1]:
                    is_context = all(
                        head <= x < head + length for x in (first, last)
                    )
                    if not is_context or last < first:
                        continue
                    if last - first >= task["max_answer_length"]:
                        continue
                    a, b = first - head + start, last - head + start
                    scores = [context_of(x, a) for x in parts]
                    if int(np.argmax(scores)) != number:
                        continue
                    limits = int(tokens.starts[a]), int(tokens.limits[b])
                    spans.append((begins[first] + ends[last], *limits))

        # One entry for each text, and one for no answer.
        null, entries = min(nulls), {}
        for score, first, last in sorted(spans, key=lambda x: -x[0]):
            entries.setdefault(context[first:last], (score, first, last))
        nbest = [(x, text) for text, (x, *_) in entries.items()]
        nbest = sorted([*nbest, (null, "")], key=lambda x: -x[0])
        kept = nbest[: task["n_best_size"]]
        if "" not in [text for _, text in kept]:
            kept.append((null, ""))
        if not entries:
            return answered("", 1.0, 0, 0, 1e6)
        best, (score, first, last) = next(iter(entries.items()))
        odds = null - score
        if odds > task["null_score_diff_threshold"]:
            best, score, first, last = "", null, 0, 0
        total = sum(np.exp(x - kept[0][0]) for x, _ in kept)
        chance = np.exp(score - kept[0][0]) / total
        return answered(best, chance, first, last, odds)

    def label_words(self, example: dict) -> dict:
        text, spans = example.get("text"), []
        if text is not None:
            spans = words.split(text, example.get("signature") == "words")
        found = example.get("words", [text[a:b] for a, b in spans])
        size, unk = S - 2, self.exact.vocab["[UNK]"]
        stride = size // 2
        ids = [self.ids(x)[: size - stride + 1] or [unk] for x in found]
        before = np.cumsum([0, *map(len, ids)]).tolist()
        labels, chances = [], []
        for start, limit, first, last in word_windows.of_words(
            before, size, stride
        ):
            row = self.row([x for word in ids[start:limit] for x in word])
            ((vectors,), _) = self.encode([row])
            logits = self.head(vectors, "cls/ner/")
            for word in range(first, last):
                chance = softmax(logits[1 + before[word] - before[start]])
                labels.append(self.task["labels"][chance.argmax()])
                chances.append(chance.max())

        listed, entities, begun = [], [], None
        for i, (word, label, chance) in enumerate(zip(found, labels, chances)):
            prefix, _, kind = label.partition("-")
            if prefix == "I" and kind != begun:
                label = f"B-{kind}"
            begun = kind or None
            listed.append({"word": word, "label": label, "probability": chance})
            if spans:
                listed[-1] |= dict(zip(("start", "end"), spans[i]))
            if label[0] == "B":
                entities.append((kind, i, i + 1))
            elif label[0] == "I":
                entities[-1] = (*entities[-1][:2], i + 1)

        def entity(kind: str, first: int, last: int) -> dict:
            start, end, name = first, last, " ".join(found[first:last])
            if spans:
                start, end = spans[first][0], spans[last - 1][1]
                name = text[start:end]
            score = np.mean(chances[first:last])
            values = (name, kind, start, end, score)
            return dict(
                zip(("entity", "type", "start", "end", "score"), values)
            )

        return {"words": listed, "entities": [entity(*x) for x in entities]}


def answered(answer, probability, start, end, null_odds) -> dict:
    return {
        "answer": answer,
        "probability": probability,
        "start": start,
        "end": end,
        "null_odds": null_odds,
    }


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def truncated(a: list, b: list, space: int, truncate: str = "head") -> tuple:
    """As `_truncate_seq_pair` of the original; "head_tail" as Sun et al."""
    if truncate == "head_tail" and len(a) > space:
        assert not b
        first = (space + 2) // 4
        a = a[:first] + a[first - space :]
    a, b = [*a], [*b]
    while len(a) + len(b) > space:
        (a if len(a) > len(b) else b).pop()
    return a, b


def windows(count: int, size: int, stride: int) -> list[tuple[int, int]]:
    """As the `doc_spans` of the original: start and length of each."""
    start, found = 0, []
    while start < count:
        length = min(count - start, size)
        found.append((start, length))
        if start + length == count:
            break
        start += min(length, stride)
    return found


def check(found, expected, places: float = 1e-5) -> None:
    """Compares JSON values; numbers may differ by `places` of their scale."""
    if isinstance(expected, dict):
        assert [*found] == [*expected]
        for key, value in expected.items():
            check(found[key], value, places)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for x, y in zip(found, expected):
            check(x, y, places)
    elif isinstance(expected, float):
        assert abs(found - expected) <= places * max(1.0, abs(expected))
    else:
        assert found == expected


CASES = {  # name -> key of trained.TASKS, examples, signature
    "labels": ("labels", SINGLE, ""),
    "several": ("several", SINGLE, ""),
    "numbers": ("numbers", SINGLE, ""),
    "pairs": ("pairs", PAIRS, ""),
    "windows": ("windows", SINGLE, ""),
    "questions": ("questions", QUESTIONS, ""),
    "words": ("words", WORDS, ""),
    "split words": ("words", SPLIT, "words"),
    "choices": ("choices", CHOICES, ""),
    "vectors": ("vectors", SINGLE, ""),
    "ranked by label": ("pairs", QUERIES, ""),
    "ranked by vector": ("vectors", QUERIES, ""),
}
RUN, EXPORT, NETWORK = (
    ("run", "keras"),
    ("export", "keras"),
    ("export", "openvino"),
)


@pytest.fixture(autouse=True, scope="module")
def opened_once():
    """Opening a model takes longer than its predictions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictor, "open", functools.cache(Predictor.open))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Key of `trained.TASKS` -> its run, and the reference of the run."""

    @functools.cache
    def made(name):
        run = trained.folder(tmp_path_factory, name)
        return run, Reference(run.run)

    return made


@pytest.fixture(scope="module")
def expected(made):
    """Name of a case -> predictions of the reference."""

    @functools.cache
    def expected(name):
        key, examples, signature = CASES[name]
        found = {"signature": signature} if signature else {}
        return made(key)[1]([x | found for x in examples])

    return expected


@pytest.fixture
def printed(run_script, made, tmp_path):
    """What predict.py prints: case, folder, engine -> predictions."""

    def printed(name, folder, engine):
        key, examples, signature = CASES[name]
        path = tmp_path / "asked.jsonl"
        path.write_text("".join(f"{json.dumps(x)}\n" for x in examples))
        code, out, err = run_script(
            predict,
            model=getattr(made(key)[0], str(folder), folder),
            engine=engine,
            input_file=path,
            signature=signature or "serving_default",
        )
        assert code == 0, err
        return [json.loads(line) for line in out.split("\n")[:-1]]

    return printed


def served(folder, engine, examples, signature, form):
    """What HTTP answers to examples, by row or by column."""
    models, app = http_server.opened(
        f"mails={folder}", engine=engine, max_batch_size=999
    )
    names = [*examples[0]]
    columns = {name: [x[name] for x in examples] for name in names}
    body = {form: examples if form == "instances" else columns}
    body |= {"signature_name": signature} if signature else {}
    path = "/v1/models/mails:predict"
    response = app.test_client().post(path, json=body)
    models["mails"].served.predict.close()
    assert response.status_code == 200, response.text
    if form == "instances":
        return response.json["predictions"]
    columns = response.json["outputs"]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.mark.parametrize("name", CASES)
def test_the_shell_and_http_agree(name, made, expected, printed):
    key, examples, signature = CASES[name]
    lines = {place: printed(name, *place) for place in (RUN, EXPORT, NETWORK)}
    for found in lines.values():
        check(found, expected(name))
    assert lines[RUN] == lines[EXPORT]
    for place, form in ((RUN, "inputs"), (NETWORK, "instances")):
        folder = getattr(made(key)[0], place[0])
        found = served(folder, place[1], examples, signature, form)
        check(found, lines[place], 0)  # without the order of the keys


@pytest.mark.parametrize("name", ["pairs", "words"])
def test_a_folder_of_transformers_agrees(
    name, made, expected, printed, tmp_path
):
    """It records neither whether a text is a pair, nor the windows."""
    folder = tmp_path / "huggingface"
    folder.mkdir()
    run = predictor.open_model(str(made(name)[0].run))
    conversion.write(run, "huggingface", str(folder))
    (folder / "task.json").unlink(missing_ok=True)
    check(printed(name, folder, "keras"), expected(name))


FILES = dict.fromkeys(["labels", "several", "windows"], "SINGLE")
FILES["pairs"] = "PAIRS"


def table(path: pathlib.Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().split("\n")[:-1]]


@pytest.mark.parametrize("name", FILES)
def test_the_script_writes_labels(name, made, expected):
    run, _ = made(name)
    header, *rows = table(run.run / "predictions.tsv")
    names = [*expected(name)[0]["probabilities"]]
    results = table(run.run / "test_results.tsv")
    assert len(rows) == len(results) == len(getattr(trained, FILES[name]))
    for row, more, wanted in zip(rows, results, expected(name)):
        row, label = dict(zip(header, row)), wanted["label"]
        joined = ",".join(label) if isinstance(label, list) else label or ""
        assert row["predicted"] == joined
        chances = [*map(float, more)]
        check(chances, [*wanted["probabilities"].values()])
        check([float(row[x]) for x in names], chances)


def test_the_script_writes_numbers(made, expected):
    run, _ = made("numbers")
    header, *rows = table(run.run / "predictions.tsv")
    found = [float(row[header.index("predicted")]) for row in rows]
    wanted = [x["value"] for x in expected("numbers")]
    check(found, wanted[: len(trained.SINGLE)])


def test_the_script_writes_answers(made, expected):
    run, _ = made("questions")
    files = ("predictions", "null_odds", "nbest_predictions")
    texts, odds, nbest = (
        json.loads((run.run / f"{x}.json").read_text()).values() for x in files
    )
    wanted = expected("questions")[: len(texts)]
    assert [*texts] == [x["answer"] for x in wanted]
    check([*odds], [x["null_odds"] for x in wanted])
    for entries, x in zip(nbest, wanted, strict=True):
        chances = {y["text"]: y["probability"] for y in entries}
        check(chances[x["answer"]], x["probability"])


def test_the_script_writes_words(made):
    run, reference = made("words")
    text = (run.run / "predictions.conll").read_text()
    found = [
        [line.split("\t")[-1] for line in sentence.split("\n") if line]
        for sentence in text.split("\n\n")
    ]
    wanted = reference([{"words": x} for x in trained.SENTENCES])
    assert found == [[x["label"] for x in y["words"]] for y in wanted]


def test_the_script_writes_choices(made, expected):
    run, _ = made("choices")
    rows = table(run.run / "predictions.tsv")
    for (best, *chances), wanted in zip(rows, expected("choices")):
        assert int(best) == wanted["best"]
        check([*map(float, chances)], wanted["probabilities"])
    assert len(rows) == len(TEXTS)


def test_the_script_writes_cosines(made, expected):
    run, _ = made("vectors")
    vectors = np.array([x["vector"] for x in expected("vectors")[: len(TEXTS)]])
    wanted = (vectors[:-1] * vectors[1:]).sum(-1)
    check([float(x) for (x,) in table(run.run / "predictions.tsv")], [*wanted])


def rounded(columns: dict) -> dict:
    """The columns of a class as JSON values of six decimals."""
    lists = {
        k: x.tolist() if isinstance(x, np.ndarray) else x
        for k, x in columns.items()
    }
    return predictor.json_values(lists)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("labels", "run"),
        ("several", "run"),
        ("numbers", "run"),
        ("windows", "export"),
    ],
)
def test_the_class_predicts_labels(name, folder, made, printed):
    run, reference = made(name)
    model = bert.TextClassifier(getattr(run, folder))
    found = rounded(model.predict([x["text"] for x in SINGLE], verbose=0))
    assert rows_of(found, model) == printed(name, folder, "keras")
    found = rows_of(rounded(model.predict(HALF, verbose=0)), model)
    check(found, reference([{"text": x} for x in HALF]))


def rows_of(columns: dict, model) -> list[dict]:
    if "value" in columns:
        return [{"value": x} for x in columns["value"]]
    return [
        {"label": label, "probabilities": dict(zip(model.labels.names, x))}
        for label, x in zip(columns["label"], columns["probabilities"])
    ]


def test_the_class_predicts_pairs(made, printed):
    run, _ = made("pairs")
    model = bert.TextClassifier(run.run)
    found = model.predict(tuple(zip(*trained.PAIRS)), verbose=0)
    assert rows_of(rounded(found), model) == printed("pairs", *RUN)


def test_the_class_answers(made, printed):
    run, _ = made("questions")
    model = bert.QuestionAnswerer(run.run)
    columns = tuple([x[y] for x in QUESTIONS] for y in ("question", "context"))
    found = rounded(model.predict(columns, verbose=0))
    lines = printed("questions", *RUN)
    check(found, {k: [x[k] for x in lines] for k in found}, 1e-6)
    with pytest.raises(UserError, match="half a surrogate pair"):
        model.predict((["Where?"], HALF[:1]))


def test_the_class_labels_words(made):
    run, reference = made("words")
    model = bert.TokenClassifier(run.run)
    sentences = [*trained.SENTENCES, [], HALF, ["\x07", *HALF]]
    found = model.predict(sentences, verbose=0)
    wanted = reference([{"words": x} for x in sentences])
    for name, key in (("labels", "label"), ("probabilities", "probability")):
        check(found[name], [[x[key] for x in y["words"]] for y in wanted])
    entities = [
        [(x["start"], x["end"], x["type"]) for x in y["entities"]]
        for y in wanted
    ]
    assert found["entities"] == entities


@pytest.mark.parametrize("folder", ["run", "export", "export/openvino"])
def test_embed_gives_vectors(folder, made, expected):
    run, reference = made("vectors")
    path = run.run.parent / folder
    texts = [x["text"] for x in SINGLE]
    wanted = [x["vector"] for x in expected("vectors")]
    check(bert.embed(texts, path).tolist(), wanted)
    wanted = [x["vector"] for x in reference([{"text": x} for x in HALF])]
    check(bert.embed(HALF, path).tolist(), wanted)


@pytest.mark.parametrize(
    "name", ["labels", "several", "numbers", "pairs", "vectors"]
)
def test_the_text_signature_agrees(name, made, expected):
    """In a process that has none of this project's code."""
    run, _ = made(name)
    _, examples, _ = CASES[name]
    columns = {key: [x[key] for x in examples] for key in examples[0]}
    found = stranger.ask(run.export, **columns)["serving_default"]
    if "label" in found:
        pairs = zip(found.pop("label_names"), found["probabilities"])
        found["probabilities"] = [dict(zip(*x)) for x in pairs]
        found["label"] = [
            [x for x in y if x] if isinstance(y, list) else y or None
            for y in found["label"]
        ]
    wanted = {k: [x[k] for x in expected(name)] for k in expected(name)[0]}
    for key, column in wanted.items():
        check(found[key], column)


@pytest.mark.parametrize("name", ["questions", "words", "choices"])
def test_the_signature_of_ids_agrees(name, made, expected):
    """Its logits, in a process that has none of this project's code."""
    run, _ = made(name)
    found = stranger.predict(run.export, CASES[name][1])
    check(predictor.json_values(found), expected(name))
