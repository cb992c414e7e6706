"""Serves an exported model over HTTP, by the REST paths of TF Serving.

    python serve.py --model=mails
    curl localhost:8501/v1/models/mails:predict -d '{"instances": ["a text"]}'

--model is the folder around the versions: of mails/1 and mails/2, 2 is served,
or 1 if 2 is damaged.
Requests that arrive together share a batch; one that fails, fails alone. Limits
end in an answer with status 413 or 503. /healthz and /metrics describe the
server. SIGTERM ends it after the answers to all requests that it has; a second
one ends it at once.
"""

import sys
from collections.abc import Callable

from bert.common import flags
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.progress import say
from bert.modeling import openvino_network
from bert.serving.http.settings import Settings


def _load(folder: str, settings: Settings, on_batch: Callable):
    if openvino_network.is_network(folder):
        from bert.serving.http import openvino_servable as servables
    else:
        from bert.serving.http import servable as servables  # TensorFlow
    return servables.Servable(folder, settings, on_batch)


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    versions = settings.find()
    folder, version = next(versions)
    with settings.listen() as opened:
        from bert.serving.http import server

        # A version that is damaged is known as such only when it is loaded.
        metrics, model = server.Metrics(), None
        while not model:
            say(f"loading {folder} ...")
            try:
                observe = metrics.batches.observe
                model = _load(folder, settings, observe)
            except UserError as error:
                folder, version = next(versions, ("", 0))
                if not folder:
                    raise
                say(f"warning: {error}")

        app = server.make_app(model, version, settings, metrics)
        host, port, *_ = opened.getsockname()
        say(
            f"serving version {version} on http://{host}:{port}/v1/models/"
            f"{settings.name}; Ctrl-C ends"
        )
        server.serve(app, opened, settings)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
