"""Serves models over HTTP, with the REST API of TF Serving.

    python serve.py --model=mails
    curl localhost:8501/v1/models/mails:predict -d '{"instances": ["a text"]}'

--model is the folder of a run or an export, or a folder with numbered versions.
With mails/1 and mails/2, version 2 is served, or version 1 if 2 is damaged. A
version that is added later replaces the old version without losing requests.
--model=mails,sports=games/export serves two models.

Requests that arrive together share a batch. An invalid request does not affect
the other requests. Requests over the limits get status 413 or 503. /healthz and
/metrics describe the server. SIGTERM ends it after all received requests are
answered. A second signal ends it at once.
"""

import functools
import os
import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.progress import log
from bert.serving import versions
from bert.serving.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    models = {
        name: versions.Model(folder, settings)
        for name, folder in settings.models
    }
    with settings.listen() as opened:
        from bert.serving import server

        # Each of these threads caches the kernels that oneDNN has compiled for
        # up to 1,024 shapes. Each model computes in one thread, and one more
        # thread accepts requests.
        threads = 1 + len(models)
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", f"{threads}")

        metrics = server.Metrics()
        for name, model in models.items():
            model.open(functools.partial(metrics.begin, name))

        app = server.make_app(models, settings, metrics)
        host, port, *_ = opened.getsockname()
        for name, model in models.items():
            log(
                f"serving version {model.served.number} on http://{host}:{port}"
                f"/v1/models/{name}; Ctrl-C ends"
            )
        server.serve(app, opened, settings, models)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
