"""Serves models over HTTP, by the REST paths of TF Serving.

    python serve.py --model=mails
    curl localhost:8501/v1/models/mails:predict -d '{"instances": ["a text"]}'

--model is the folder of a run or of an export, or a folder around numbered
versions: of mails/1 and mails/2, 2 is served, or 1 if 2 is damaged. A version
that is added later replaces the one before it, and no request is lost.
--model=mails,sports=games/export serves two models.
Requests that arrive together share a batch; one that fails, fails alone. Limits
end in an answer with status 413 or 503. /healthz and /metrics describe the
server. SIGTERM ends it after the answers to all requests that it has; a second
one ends it at once.
"""

import functools
import os
import sys

from bert.common import flags
from bert.common import main as common_main
from bert.common.progress import say
from bert.serving import versions
from bert.serving.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    models = {
        name: versions.Model(folder, settings)
        for name, folder in settings.models
    }
    with settings.listen() as opened:
        from bert.serving import server

        # Each of these threads keeps what oneDNN has compiled for up to 1,024
        # shapes. A model computes in one; one more takes requests meanwhile.
        threads = 1 + len(models)
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", f"{threads}")

        metrics = server.Metrics()
        for name, model in models.items():
            model.open(functools.partial(metrics.begin, name))

        app = server.make_app(models, settings, metrics)
        host, port, *_ = opened.getsockname()
        for name, model in models.items():
            say(
                f"serving version {model.served.number} on http://{host}:{port}"
                f"/v1/models/{name}; Ctrl-C ends"
            )
        server.serve(app, opened, settings, models)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
