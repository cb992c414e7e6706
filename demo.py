"""Serves a web page to try a model, on this machine only.

    python demo.py --model=quickstart/run
    python demo.py --model=quickstart/packages_export

For a run or an export of run_classifier.py, run_squad.py, run_ner.py or
run_swag.py, the page predicts the task. For another checkpoint it shows nearest
neighbours of a text and attention probabilities. It also fills masks if the
checkpoint has a masked-LM head.
"""

import dataclasses
import os
import sys

from bert.common import command_line, errors, storage
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, flag
from bert.common.progress import log
from bert.inference.predictor import Predictor
from bert.modeling.engines import openvino_engine
from bert.modeling.formats import checkpoint_files


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Settings of demo.py."""

    model: str = flag(
        None,
        "Folder of an export or of a run, or prefix of a checkpoint.",
        required=True,
        path=True,
    )
    port: int = flag(
        8000,
        "Port on 127.0.0.1; 0 selects a free one.",
        at_least=0,
        at_most=65535,
    )
    top_k: int = flag(5, "Number of words for each mask.", at_least=1)

    def check(self) -> bool:
        """Checks the model's folder; returns whether it has a task.

        Raises:
            UserError: the model or a package of the pages is missing.
        """
        path = checkpoint_files.beside(self.model, checkpoint_files.TASK)
        graph = os.path.join(self.model, "saved_model.pb")
        is_export = openvino_engine.find(self.model) or storage.is_file(graph)
        is_run = storage.find(self.model, "*.index")
        if not (is_export or is_run or storage.exists(f"{self.model}.index")):
            raise UserError(
                "no model",
                path=self.model,
                expected="the folder of an export or of a run with a "
                "checkpoint",
            )

        errors.check_packages("demo", "gradio")
        return bool(is_export) or storage.is_file(path)


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    has_task = settings.check()

    # Set before gradio is imported: disables its analytics.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    from bert.reports import demo_pages

    # Before the model is loaded, since the port may be in use.
    opened = demo_pages.listen(settings.port)
    if has_task:
        predictor = Predictor.open(settings.model)
        pages = demo_pages.page_of_task(settings.model, predictor)
    else:
        pages = demo_pages.pages_of_run(settings.model, settings.top_k)

    app = demo_pages.make_app(settings.model, pages)
    log(
        f"serving {settings.model} on http://{demo_pages.HOST}:"
        f"{opened.getsockname()[1]}; Ctrl-C ends"
    )
    demo_pages.serve(app, opened)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
