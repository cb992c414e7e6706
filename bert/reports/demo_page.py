"""A page to ask a model, on this machine only.

    Form, with a function of the texts -> app -> serve

The page is plain HTML: it works without scripts. Texts are escaped by the
template's engine.
"""

import dataclasses
import logging
import os
import socket
import threading
from collections.abc import Callable

import flask
from werkzeug import serving

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.reports import figures
from bert.reports.run_files import is_number

HOST = "127.0.0.1"
_MAX_BYTES = 1 << 20  # of a request


@dataclasses.dataclass(frozen=True)
class Field:
    """An input of a form.

    Attributes:
        name: of the input.
        label: what to write there.
        example: its first value.
        lines: height of the input.
        choices: values to choose from, instead of a text.
        is_optional: whether it may be empty.
    """

    name: str
    label: str
    example: str = ""
    lines: int = 1
    choices: tuple[str, ...] = ()
    is_optional: bool = False


@dataclasses.dataclass(frozen=True)
class Form:
    """Something to ask a model.

    Attributes:
        name: last part of its address.
        title: heading.
        fields: its inputs.
        answer: name -> value of each field to a view of `reports.answers`;
            raises UserError for a text that cannot be answered.
    """

    name: str
    title: str
    fields: list[Field]
    answer: Callable[[dict[str, str]], dict]


def make_app(model: str, forms: list[Form], note: str = "") -> flask.Flask:
    """Makes the page.

    Args:
        model: name of the model, a heading.
        forms: at least one; each has a page.
        note: a line below the heading.
    """
    app = flask.Flask(__name__, template_folder=".", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = _MAX_BYTES
    app.config["MAX_FORM_MEMORY_SIZE"] = _MAX_BYTES

    # Pages of others may not ask through a name of their own.
    app.config["TRUSTED_HOSTS"] = [HOST, "localhost"]
    app.jinja_env.filters["shown"] = _shown

    # Each request has a thread of its own, and all share the model.
    named = {form.name: form for form in forms}
    one_at_a_time = threading.Lock()

    @app.get("/")
    def first():
        return flask.redirect(f"/{forms[0].name}")

    @app.route("/<name>", methods=["GET", "POST"])
    def ask(name):
        if name not in named:
            flask.abort(404)

        form, answer, error = named[name], None, None
        values = {field.name: field.example for field in form.fields}
        if flask.request.method == "POST":
            # Browsers end the lines of a text area by \r\n.
            values = {key: flask.request.form.get(key, "") for key in values}
            values = {k: v.replace("\r\n", "\n") for k, v in values.items()}
            try:
                with one_at_a_time:
                    answer = form.answer(values)
            except UserError as problem:
                error = str(problem)

        page = flask.render_template(
            "demo.html",
            model=model,
            note=note,
            forms=forms,
            form=form,
            values=values,
            answer=answer,
            error=error,
        )
        return page, 400 if error else 200

    @app.after_request
    def forbid_scripts(response):
        # The page shows texts of users: none may run as a script.
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"
        )
        return response

    return app


def _shown(value) -> str:
    if is_number(value) and isinstance(value, float):
        return figures.shown(value)
    return json_files.to_json(value) if isinstance(value, list) else str(value)


def listen(port: int) -> socket.socket:
    """Opens the port on this machine.

    Args:
        port: 0 for any free one.

    Raises:
        UserError: it is in use.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UserError(
            f"--port={port}: {os.strerror(error.errno)}",
            expected="a free port",
            fix="pass another, or 0 for any",
        ) from None


def serve(app: flask.Flask, opened: socket.socket) -> None:
    """Answers requests until Ctrl-C."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    host, port = opened.getsockname()
    server = serving.make_server(
        host, port, app, threaded=True, fd=opened.fileno()
    )
    with server:
        server.serve_forever()
